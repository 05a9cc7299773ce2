// The system's C library under one name: `import LibC` instead of a choice in every file.

#if canImport(Glibc)
@_exported public import Glibc
#elseif canImport(Musl)
@_exported public import Musl
#else
@_exported public import Darwin
#endif

// Constants that glibc's overlay gives types of their own, as the numbers that the calls take.
#if canImport(Glibc)
package let streamSocket = CInt(SOCK_STREAM.rawValue)
package let datagramSocket = CInt(SOCK_DGRAM.rawValue)
/// For getrusage(2).
package let usageOfThisProcess = __rusage_who_t(RUSAGE_SELF.rawValue)
/// malloc_trim(3) of glibc, whose header the overlay omits; nil with other C libraries.
package let mallocTrim: (@convention(c) (Int) -> CInt)? =
    // Null is RTLD_DEFAULT. The symbol's type is from the manual.
    dlsym(nil, "malloc_trim").map { unsafeBitCast($0, to: (@convention(c) (Int) -> CInt).self) }
/// mallopt(3) of glibc; nil with other C libraries.
package let mallocOption: (@convention(c) (CInt, CInt) -> CInt)? =
    dlsym(nil, "mallopt").map { unsafeBitCast($0, to: (@convention(c) (CInt, CInt) -> CInt).self) }
/// pthread_setattr_default_np(3), which the overlay omits too; nil with other C libraries.
package let setDefaultThreadAttributes: (@convention(c) (UnsafePointer<pthread_attr_t>) -> CInt)? =
    dlsym(nil, "pthread_setattr_default_np").map { unsafeBitCast($0, to: (@convention(c) (UnsafePointer<pthread_attr_t>) -> CInt).self) }
/// pthread_setname_np(3), which the overlay omits too; nil with other C libraries.
package let nameThread: (@convention(c) (pthread_t, UnsafePointer<CChar>) -> CInt)? =
    dlsym(nil, "pthread_setname_np").map { unsafeBitCast($0, to: (@convention(c) (pthread_t, UnsafePointer<CChar>) -> CInt).self) }
#else
package let streamSocket = CInt(SOCK_STREAM)
package let datagramSocket = CInt(SOCK_DGRAM)
package let usageOfThisProcess = RUSAGE_SELF
package let mallocTrim: (@convention(c) (Int) -> CInt)? = nil
package let mallocOption: (@convention(c) (CInt, CInt) -> CInt)? = nil
package let setDefaultThreadAttributes: (@convention(c) (UnsafePointer<pthread_attr_t>) -> CInt)? = nil
package let nameThread: (@convention(c) (pthread_t, UnsafePointer<CChar>) -> CInt)? = nil
#endif

/// `M_ARENA_MAX` of malloc.h: how many heaps malloc may make.
package let mallocArenas: CInt = -8

/// Sets an advisory option of a socket: a kernel that does not know it works without.
package func setSocketOption(_ descriptor: CInt, _ level: CInt, _ option: CInt, _ value: CInt) {
    var value = value
    _ = setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<CInt>.size))
}

/// The system's words for an error number, such as "No such file or directory".
package func errorText(_ code: CInt) -> String { String(cString: strerror(code)) }
