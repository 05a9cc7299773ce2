import LibC

/// A failed operation on a file, with the system's message.
struct FileFailure: Error, CustomStringConvertible {
    let description: String

    /// Reads `errno`: call right after the failure.
    init(_ operation: String, _ path: String) {
        self.description = "cannot \(operation) \(path): \(errorText(errno))"
    }
}
