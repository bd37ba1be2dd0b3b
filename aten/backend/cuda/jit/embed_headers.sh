#!/bin/sh
# Writes C++ source with the texts of files, for the compiler of generated kernels:
#
#     embed_headers.sh FILE... >device_headers.cc
#
# A text's name is the one by which kernels include it: of a file under aten/backend/cuda/device/standard/ or
# one_lane/, what follows that; else the path itself.
# SPDX-License-Identifier: Apache-2.0
echo '#include "aten/backend/cuda/jit/device_headers.h"'
echo 'namespace treadle::cuda {'
echo 'const DeviceHeader kDeviceHeaders[] = {'
for file; do
  name=${file#aten/backend/cuda/device/standard/}
  printf '{"%s", R"TREADLE_TEXT(' "${name#aten/backend/cuda/device/one_lane/}"
  cat "$file"
  echo ')TREADLE_TEXT"},'
done
echo '};'
echo "const size_t kDeviceHeaderCount = $#;"
echo '}  // namespace treadle::cuda'
