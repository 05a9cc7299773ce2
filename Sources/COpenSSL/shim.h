#pragma once
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

// Macros of OpenSSL's that Swift cannot see.

static inline int earshot_ssl_require_tls12(SSL_CTX *context) { return (int)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION); }
static inline int earshot_ssl_set_server_name(SSL *ssl, const char *name) { return (int)SSL_set_tlsext_host_name(ssl, name); }
/// A write may take part of the bytes, and be repeated from another address.
static inline void earshot_ssl_allow_partial_writes(SSL *ssl) {
  SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}
/// Servers that close without a TLS goodbye end the stream all the same.
static inline void earshot_ssl_take_eof_as_end(SSL *ssl) {
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
  SSL_set_options(ssl, SSL_OP_IGNORE_UNEXPECTED_EOF);
#endif
}
static inline const char *earshot_ssl_cipher(const SSL *ssl) { return SSL_CIPHER_get_name(SSL_get_current_cipher(ssl)); }

// DTLS, of which 1.2 alone is spoken. A peer sends its certificate in at most `longest_chain` bytes.
static inline int earshot_dtls_restrict(SSL_CTX *context, long longest_chain) {
  SSL_CTX_set_options(context, SSL_OP_NO_QUERY_MTU | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(context, longest_chain);
  return SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION) == 1 && SSL_CTX_set_max_proto_version(context, DTLS1_2_VERSION) == 1;
}
static inline void earshot_dtls_set_mtu(SSL *ssl, long mtu) { SSL_set_mtu(ssl, mtu); }
/// Microseconds until the flight is to be sent again; -1: nothing waits.
static inline long long earshot_dtls_timeout_us(SSL *ssl) {
  struct timeval left;
  if (DTLSv1_get_timeout(ssl, &left) != 1) return -1;
  return (long long)left.tv_sec * 1000000 + left.tv_usec;
}
static inline int earshot_dtls_handle_timeout(SSL *ssl) { return (int)DTLSv1_handle_timeout(ssl); }
static inline EVP_PKEY *earshot_new_p256_key(void) { return EVP_EC_gen("P-256"); }
/// No file, and no growing without end: reads of nothing say "again".
static inline void earshot_bio_is_never_at_end(BIO *bio) { BIO_set_mem_eof_return(bio, -1); }
