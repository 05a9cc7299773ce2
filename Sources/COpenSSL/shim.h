#pragma once
#include <openssl/err.h>
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
