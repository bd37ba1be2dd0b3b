// NVRTC, and the cache of compiled files that avoids it.
//
// SPDX-License-Identifier: Apache-2.0
#include "aten/backend/cuda/jit/compiler.h"

#include <fcntl.h>
#include <nvrtc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "aten/backend/cuda/jit/device_headers.h"
#include "aten/backend/cuda/shared_library.h"
#include "core/base/error.h"

namespace treadle::cuda {
namespace {

struct Nvrtc {
  SharedLibrary library{"libnvrtc.so.13", "compiles kernels", "nvidia-cuda-nvrtc"};
#define TREADLE_NVRTC(name)     \
  decltype(&nvrtc##name) name = \
      library.function<std::remove_pointer_t<decltype(&nvrtc##name)>>("nvrtc" #name)
  TREADLE_NVRTC(CreateProgram);
  TREADLE_NVRTC(CompileProgram);
  TREADLE_NVRTC(DestroyProgram);
  TREADLE_NVRTC(GetCUBINSize);
  TREADLE_NVRTC(GetCUBIN);
  TREADLE_NVRTC(GetProgramLogSize);
  TREADLE_NVRTC(GetProgramLog);
  TREADLE_NVRTC(GetErrorString);
  TREADLE_NVRTC(Version);
#undef TREADLE_NVRTC
};
const Nvrtc& nvrtc() {
  static const auto* nvrtc = new Nvrtc;
  return *nvrtc;
}

void succeed(nvrtcResult code, const char* doing) {
  check<ErrorKind::Runtime>(code == NVRTC_SUCCESS, OpName("cuda"), "expected ", doing,
                            " to succeed, got ", nvrtc().GetErrorString(code));
}

class Program {
 public:
  explicit Program(const std::string& source) {
    std::vector<const char*> texts, names;
    for (size_t i = 0; i < kDeviceHeaderCount; ++i) {
      texts.push_back(kDeviceHeaders[i].text);
      names.push_back(kDeviceHeaders[i].name);
    }
    succeed(nvrtc().CreateProgram(&program_, source.c_str(), "kernel.cu",
                                  static_cast<int>(texts.size()), texts.data(), names.data()),
            "making a program");
  }
  Program(const Program&) = delete;
  ~Program() { nvrtc().DestroyProgram(&program_); }

  std::string compile(const std::vector<const char*>& options) {
    const nvrtcResult code =
        nvrtc().CompileProgram(program_, static_cast<int>(options.size()), options.data());
    if (code == NVRTC_ERROR_COMPILATION) {
      size_t size = 0;
      succeed(nvrtc().GetProgramLogSize(program_, &size), "reading a compiler's log");
      std::string log(size, '\0');
      succeed(nvrtc().GetProgramLog(program_, log.data()), "reading a compiler's log");
      fail<ErrorKind::Internal>(
          "internal error, please report it: a generated kernel does not "
          "compile:\n",
          log.substr(0, 2000));
    }
    succeed(code, "compiling a kernel");
    size_t size = 0;
    succeed(nvrtc().GetCUBINSize(program_, &size), "reading a compiled kernel");
    std::string code_text(size, '\0');
    succeed(nvrtc().GetCUBIN(program_, code_text.data()), "reading a compiled kernel");
    return code_text;
  }

 private:
  nvrtcProgram program_ = nullptr;
};

// Two sums of all bytes (Fowler, Noll and Vo's) with different starts: 128 bits distinguish all
// kernels.
class Digest {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      a_ = (a_ ^ static_cast<unsigned char>(c)) * 1099511628211ull;
      b_ = (b_ * 1099511628211ull) ^ static_cast<unsigned char>(c);
    }
    a_ ^= text.size() * 0x9E3779B97F4A7C15ull;
  }
  std::string text() const {
    char digits[33];
    std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(a_),
                  static_cast<unsigned long long>(b_));
    return digits;
  }

 private:
  uint64_t a_ = 14695981039346656037ull, b_ = 0x84222325CBF29CE4ull;
};

const std::string& headers_digest() {
  static const auto* text = [] {
    Digest digest;
    for (size_t i = 0; i < kDeviceHeaderCount; ++i) {
      digest.add(kDeviceHeaders[i].name);
      digest.add(kDeviceHeaders[i].text);
    }
    return new std::string(digest.text());
  }();
  return *text;
}

std::string version() {
  int major = 0, minor = 0;
  succeed(nvrtc().Version(&major, &minor), "asking for the compiler's version");
  return str(major, '.', minor);
}

bool make_folders(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (mkdir(part.c_str(), 0755) != 0 && access(part.c_str(), X_OK) != 0) return false;
    if (at == std::string::npos) return true;
  }
}

// Other processes see the whole file or none. If it cannot be written, nothing is cached.
void keep(const std::string& folder, const std::string& name, const std::string& content) {
  if (!make_folders(folder)) return;
  std::string temporary = folder + "/" + name + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  if (file < 0) return;
  bool written = true;
  for (size_t at = 0; written && at < content.size();) {
    const ssize_t n = write(file, content.data() + at, content.size() - at);
    written = n > 0;
    if (written) at += static_cast<size_t>(n);
  }
  written = close(file) == 0 && written;
  if (!written || rename(temporary.c_str(), (folder + "/" + name).c_str()) != 0)
    unlink(temporary.c_str());
}

std::string kept(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  return std::move(content).str();
}

}  // namespace

std::string cache_folder() {
  if (const char* const given = std::getenv("TREADLE_CUDA_CACHE")) return given;
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return std::string(cache) + "/treadle/cuda";
  const char* const home = std::getenv("HOME");
  return home && *home == '/' ? std::string(home) + "/.cache/treadle/cuda" : "";
}

std::string compile_anew(std::string_view source, int architecture) {
  Program program{std::string(source)};
  const std::string target = str("--gpu-architecture=sm_", architecture);
  // Each operation is rounded by itself and exactly, as on the CPU.
  return program.compile({target.c_str(), "--std=c++20", "--fmad=false", "--ftz=false",
                          "--prec-div=true", "--prec-sqrt=true",
                          "--device-as-default-execution-space", "--disable-warnings"});
}

std::string compile(std::string_view source, int architecture) {
  const std::string folder = cache_folder();
  if (folder.empty()) return compile_anew(source, architecture);
  Digest digest;
  digest.add(source);
  digest.add(headers_digest());
  const std::string name = str(digest.text(), "-sm_", architecture, "-nvrtc-", version(), ".cubin");
  // A truncated file may still have its ELF header, so the end is checked, too.
  const std::string end = "treadle " + digest.text();
  std::string found = kept(folder + "/" + name);
  if (found.ends_with(end)) {
    found.resize(found.size() - end.size());
    return found;
  }
  std::string made = compile_anew(source, architecture);
  keep(folder, name, made + end);
  return made;
}

}  // namespace treadle::cuda
