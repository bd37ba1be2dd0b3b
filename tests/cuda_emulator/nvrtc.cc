// NVRTC's functions for emulated devices: a generated kernel is compiled by g++, without a standard
// library, as it is by NVRTC, and becomes a shared library; and the functions of the runtime that
// load and launch what was compiled.
//
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <nvrtc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "aten/backend/cuda/fault_record.h"
#include "tests/cuda_emulator/device.h"
#include "tests/cuda_emulator/threads.h"

namespace treadle::cuda::emulator {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}
void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

// A folder that goes with the process.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "treadle-emulator-XXXXXX").string();
    path_ = mkdtemp(name.data()) ? name : ".";
    owner_ = getpid();
  }
  ~Folder() {
    std::error_code ignored;
    if (owner_ == getpid() && path_ != ".") fs::remove_all(path_, ignored);
  }
  fs::path path() const { return path_; }

 private:
  fs::path path_;
  pid_t owner_;
};
const fs::path& folder() {
  static const Folder folder;
  static const fs::path path = folder.path();
  return path;
}

// This library, which compiled kernels are linked with.
std::string own_path() {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&own_path), &here);
  return here.dli_fname;
}

// The compiler's command for generated kernels. Their headers are compiled once in a process, since
// reading them takes longer than a kernel.
const char* const kCompile =
    "g++ -std=c++20 -O1 -fPIC -w -nostdinc++ -ffp-contract=off -fno-gnu-unique "
    "-fsanitize=alignment,bounds,shift -fsanitize-undefined-trap-on-error -DTREADLE_EMULATED=1 ";
const char* const kHeader = "kernel_headers.h";

std::string include_option() { return "-I'" + (folder() / "include").string() + "' "; }

// Writes the headers that kernels include, and compiles them.
void prepare_headers(int count, const char* const* texts, const char* const* names) {
  const fs::path place = folder() / "include";
  std::string all = "#include \"tests/cuda_emulator/prelude.h\"\n";
  for (int i = 0; i < count; ++i) {
    const std::string_view name = names[i];
    const bool instructions = name == "aten/backend/cuda/device/instructions.h";
    write(place / name,
          instructions ? "#include \"tests/cuda_emulator/instructions.h\"\n" : texts[i]);
    if (name.ends_with(".cuh")) all += "#include \"" + std::string(name) + "\"\n";
  }
  const std::string header = (place / kHeader).string();
  write(header, all);
  // Without the compiled header, kernels read its text.
  (void)std::system(
      (kCompile + include_option() + "-x c++-header '" + header + "' -o '" + header + ".gch'")
          .c_str());
}

struct Program {
  std::string source, log, compiled;
};
Program& program_of(nvrtcProgram p) { return *reinterpret_cast<Program*>(p); }

}  // namespace
}  // namespace treadle::cuda::emulator

namespace e = treadle::cuda::emulator;

extern "C" {

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char*, int count,
                               const char* const* texts, const char* const* names) {
  static const bool written = (e::prepare_headers(count, texts, names), true);
  (void)written;
  *program = reinterpret_cast<nvrtcProgram>(new e::Program{source, "", ""});
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram handle, int, const char* const*) {
  e::Program& p = e::program_of(handle);
  std::smatch found;
  if (!std::regex_search(p.source, found,
                         std::regex(R"(__global__ void __launch_bounds__\(\d+\) (\w+)\()")))
    return NVRTC_ERROR_INVALID_INPUT;
  static int number = 0;
  const std::string stem = (e::folder() / ("kernel" + std::to_string(++number))).string();
  e::write(stem + ".cc", p.source + "TREADLE_EMULATED_KERNEL(" + found[1].str() + ")\n");
  const std::string command = e::kCompile + e::include_option() + "-shared -fuse-ld=mold " +
                              "-Wl,-Bsymbolic -include " + e::kHeader + " '" + stem + ".cc' '" +
                              e::own_path() + "' -o '" + stem + ".so' 2>'" + stem + ".log'";
  const int status = std::system(command.c_str());
  p.log = e::read(stem + ".log");
  const std::string library = e::read(stem + ".so");
  const uint64_t size = library.size();
  p.compiled = std::string(reinterpret_cast<const char*>(&size), sizeof size) + library;
  std::error_code ignored;
  for (const char* end : {".cc", ".so", ".log"}) e::fs::remove(stem + end, ignored);
  return status == 0 ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete &e::program_of(*program);
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* size) {
  *size = e::program_of(program).compiled.size();
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* text) {
  const std::string& compiled = e::program_of(program).compiled;
  std::memcpy(text, compiled.data(), compiled.size());
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  *size = e::program_of(program).log.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* text) {
  std::strcpy(text, e::program_of(program).log.c_str());
  return NVRTC_SUCCESS;
}
const char* nvrtcGetErrorString(nvrtcResult code) {
  return code == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "NVRTC_ERROR";
}
// In the names of kept files: what was compiled for a device is no use here.
nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 0;
  *minor = 3;
  return NVRTC_SUCCESS;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* image, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
  uint64_t size;
  std::memcpy(&size, image, sizeof size);
  static int number = 0;
  const std::string path = (e::folder() / ("loaded" + std::to_string(++number) + ".so")).string();
  e::write(path, std::string(static_cast<const char*>(image) + sizeof size, size));
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) std::fprintf(stderr, "emulator: %s\n", dlerror());
  std::error_code ignored;
  e::fs::remove(path, ignored);
  *library = static_cast<cudaLibrary_t>(handle);
  return handle ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char*) {
  *kernel = reinterpret_cast<cudaKernel_t>(library);
  return cudaSuccess;
}
cudaError_t cudaLibraryGetGlobal(void** variable, size_t* bytes, cudaLibrary_t library,
                                 const char* name) {
  *variable = dlsym(library, name);
  *bytes = sizeof(treadle::cuda::FaultPlace);
  return *variable ? cudaSuccess : cudaErrorSymbolNotFound;
}
// Copies the arguments, as a launch does.
cudaError_t cudaLaunchKernel(const void* kernel, dim3 blocks, dim3 threads, void** arguments,
                             size_t shared, cudaStream_t stream) {
  void* const library = const_cast<void*>(kernel);
  const int count = *static_cast<const int*>(dlsym(library, "emulated_count"));
  const auto* const sizes = *static_cast<const size_t* const*>(dlsym(library, "emulated_sizes"));
  const auto call = reinterpret_cast<void (*)(void**)>(dlsym(library, "emulated_call"));
  struct alignas(16) Unit {
    char bytes[16];
  };
  std::vector<std::vector<Unit>> copies;
  for (int i = 0; i < count; ++i) {
    copies.emplace_back((sizes[i] + 15) / 16);
    std::memcpy(copies.back().data(), arguments[i], sizes[i]);
  }
  const char* const name = *static_cast<const char* const*>(dlsym(library, "emulated_name"));
  e::queue_kernel(name, blocks, threads, shared, stream,
                  [call, copies = std::move(copies)]() mutable {
                    void* addresses[64];
                    for (size_t i = 0; i < copies.size(); ++i) addresses[i] = copies[i].data();
                    call(addresses);
                  });
  return cudaSuccess;
}

}  // extern "C"
