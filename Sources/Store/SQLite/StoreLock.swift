import LibC

/// Held by the one server that uses a data directory. The kernel releases it when the process ends, however it ends.
package final class StoreLock: Sendable {
    private let descriptor: Int32

    private static let tries = 10
    private static let pauseUs: UInt32 = 50_000

    private static func file(in directory: String) -> String { directory + "/earshot.lock" }

    /// Whether a server uses the directory now. Creates no file.
    static func isHeld(directory: String) -> Bool {
        let descriptor = open(self.file(in: directory), O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return flock(descriptor, LOCK_EX | LOCK_NB) != 0
    }

    /// Throws ``StoreError`` when another server holds it.
    init(directory: String, store path: String) throws {
        let descriptor = open(Self.file(in: directory), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw StoreError(
                path: path, problem: "cannot be locked (\(errorText(errno)))",
                advice: "check that its folder exists and may be written to")
        }
        var tries = 0
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            tries += 1
            // A token command holds it briefly.
            if tries < Self.tries {
                usleep(Self.pauseUs)
                continue
            }
            close(descriptor)
            throw StoreError(
                path: path, problem: "is in use by another server", advice: "stop that one, or give this one its own data directory",
                isConflict: true)
        }
        self.descriptor = descriptor
    }

    deinit { close(self.descriptor) }
}
