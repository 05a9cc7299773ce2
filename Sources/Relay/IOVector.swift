#if canImport(Glibc)
package import Glibc
#elseif canImport(Musl)
package import Musl
#else
package import Darwin
#endif

/// `struct iovec`: a piece of memory for `writev`.
package typealias IOVector = iovec
