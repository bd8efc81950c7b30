#include "base/locked_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace edgerunner {

int open_locked(const std::filesystem::path& path) {
  while (true) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) return -1;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor);
      errno = EWOULDBLOCK;
      return -1;
    }
    // Whoever held it before may have given it another name in the meantime.
    struct stat held {};
    struct stat named {};
    if (::fstat(descriptor, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
        held.st_ino == named.st_ino && held.st_dev == named.st_dev) {
      return descriptor;
    }
    ::close(descriptor);
  }
}

}  // namespace edgerunner
