import NIOCore

extension IOError {
    /// A short description of the common socket errors, by the numbers of Linux's errno.h.
    package var words: String {
        switch self.errnoCode {
        case 104: "reset by the client"
        case 32: "closed by the client during a write"
        case 110: "the client's network no longer answers"
        default: self.description
        }
    }
}
