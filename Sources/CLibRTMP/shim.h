#pragma once
#include <librtmp/log.h>
#include <librtmp/rtmp.h>
#include <string.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

// librtmp's receive buffer is an array too long for Swift to import; these reach what lies around it.

static inline int earshot_rtmp_socket(const RTMP *r) { return r->m_sb.sb_socket; }
static inline void earshot_rtmp_set_socket(RTMP *r, int descriptor) { r->m_sb.sb_socket = descriptor; }
static inline int earshot_rtmp_timed_out(const RTMP *r) { return r->m_sb.sb_timedout; }

/// Makes `bytes` what librtmp reads next, instead of its socket. They must stay until it has read them or `earshot_rtmp_unfeed`.
static inline void earshot_rtmp_feed(RTMP *r, const void *bytes, int count) {
  r->m_sb.sb_start = (char *)bytes;
  r->m_sb.sb_size = count;
}

/// Bytes that librtmp holds and has not read yet.
static inline int earshot_rtmp_unread(const RTMP *r) { return r->m_sb.sb_size; }
static inline const void *earshot_rtmp_unread_start(const RTMP *r) { return r->m_sb.sb_start; }

/// Forgets what was fed.
static inline void earshot_rtmp_unfeed(RTMP *r) {
  r->m_sb.sb_start = r->m_sb.sb_buf;
  r->m_sb.sb_size = 0;
}

static inline AVal earshot_aval(char *text) {
  AVal value = {text, text ? (int)strlen(text) : 0};
  return value;
}

/// Sets the calling thread's name, as debuggers and `top` show it; at most 15 bytes.
static inline void earshot_name_thread(const char *name) {
#ifdef __linux__
  prctl(PR_SET_NAME, name, 0, 0, 0);
#else
  (void)name;
#endif
}
