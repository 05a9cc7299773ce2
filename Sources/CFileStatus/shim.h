#pragma once
#include <sys/stat.h>

// Swift attributes the members of `struct stat` to whichever module it met them in first; these give them as plain numbers.

/// Describes the file behind a descriptor; -1 with errno if that is impossible.
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

#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

/// The kernel clock's state, adjtimex(2): 0 to 4 while something keeps it right, 5 (TIME_ERROR) while nothing does, -1 when that cannot
/// be read. The call by its number: the structure's header would bring `struct timeval` into this module.
static inline int earshot_clock_state(void) {
#if defined(__linux__) && defined(SYS_adjtimex)
  // Longer than struct timex, and all zero: reads, and sets nothing.
  long timex[64] = {0};
  return (int)syscall(SYS_adjtimex, timex);
#else
  return -1;
#endif
}

/// When what `path` names was last written, in seconds since 1970; -1 when there is nothing.
static inline long long earshot_modified(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 ? (long long)status.st_mtime : -1;
}

/// Takes the end of one child that has ended (wait(2)); 0 when none has. The call by its number: the header would bring `struct timeval` too.
static inline int earshot_reap_one(void) {
#ifdef __linux__
  return syscall(SYS_wait4, -1L, 0L, 1L /* WNOHANG */, 0L) > 0 ? 1 : 0;
#else
  return 0;
#endif
}

/// The signal that this thread gets when its parent ends, PR_GET_PDEATHSIG of prctl(2); 0: none.
static inline int earshot_parent_death_signal(void) {
  int number = 0;
#ifdef __linux__
  if (syscall(SYS_prctl, 2L, (long)&number, 0L, 0L, 0L) != 0) return 0;
#endif
  return number;
}

/// Sets it, PR_SET_PDEATHSIG.
static inline void earshot_set_parent_death_signal(int number) {
#ifdef __linux__
  (void)syscall(SYS_prctl, 1L, (long)number, 0L, 0L, 0L);
#endif
}
