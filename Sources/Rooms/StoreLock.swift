#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Held by the one server that works on a data directory; the kernel lets go of it when the process ends, however it ends.
final class StoreLock: Sendable {
    private let descriptor: Int32

    /// Throws ``StoreError`` when another server holds it.
    init(directory: String, store path: String) throws {
        let descriptor = open(directory + "/earshot.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StoreError(
                path: path, problem: "cannot be locked (\(String(cString: strerror(errno))))",
                advice: "check that its folder exists and may be written to")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw StoreError(
                path: path, problem: "is in use by another server", advice: "end that one, or give this one its own data directory")
        }
        self.descriptor = descriptor
    }

    deinit { close(self.descriptor) }
}
