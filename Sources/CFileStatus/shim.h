#pragma once
#include <sys/stat.h>

// Swift attributes the members of `struct stat` to whichever module it met them in first; these give them as plain numbers.

/// What a descriptor is open on; -1 with errno when that cannot be told.
static inline int earshot_status_of_file(int descriptor, int *is_regular, unsigned *permissions, long long *bytes,
                                         unsigned long long *inode) {
  struct stat status;
  if (fstat(descriptor, &status) != 0) return -1;
  *is_regular = S_ISREG(status.st_mode) ? 1 : 0;
  *permissions = status.st_mode & 0777;
  *bytes = status.st_size;
  *inode = status.st_ino;
  return 0;
}

/// st_size of what `path` names; -1 when there is nothing.
static inline long long earshot_size_of(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 ? (long long)status.st_size : -1;
}
