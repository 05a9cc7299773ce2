package import Rooms
import Support

/// The connection failed between a transaction's COMMIT and the answer, and nobody knows yet whether it was committed. No other transaction
/// of this process must run before ``RoomStore/wasCommitted(_:)`` tells.
package struct CommitLost: Error {
    /// The transaction's number.
    package let batch: Int64
    package let cause: any Error
}

/// Nobody can tell any more whether a transaction was committed: another process has taken this one's membership in the database.
package struct CommitForgotten: DatabaseFailure {
    package var text: String { "another process has taken this server's place in the database" }
}

/// An unusable store: the file or database, the problem and the remedy.
package struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
    /// A file's path, or a database's address without its password.
    package let path: String
    package let problem: String
    package let advice: String
    /// The store itself is fine, but another process uses it, or the membership is taken.
    package var isConflict = false
    package var description: String { "\(self.path): \(self.problem); \(self.advice)" }
}

/// The open database files were deleted, moved or replaced.
package struct StoreGone: Error {}

/// An error of a database, described without the statement and its values, which may hold secrets.
package protocol DatabaseFailure: Error {
    var text: String { get }
    /// What to do about it; nil if it says nothing of its cause.
    var advice: String? { get }
}

extension DatabaseFailure {
    package var advice: String? { nil }
}

extension RegistryError {
    /// Converts an internal error into one for the registry's callers.
    package init(of error: any Error) {
        self =
            switch error {
            case let error as RegistryError: error
            case let error as FieldError: .invalid(error)
            case let error as any DatabaseFailure:
                .storeFailed([error.text, error.advice].compactMap(\.self).joined(separator: "; "))
            case let error as CommitLost: .init(of: error.cause)
            case is StoreGone: .storeGone
            case is CancellationError: .storeFailed("cancelled")
            default: .storeFailed("\(error)")
            }
    }
}

extension RegistryError {
    /// A description for operators, without paths.
    package var storeProblem: String {
        switch self {
        case .storeGone: "the data directory was deleted or replaced while the server was running; put it back, or restart the server"
        case .storeFailed(let what): what
        case .onOtherNode(let what, let node): "\(what) is on the node \(node)"
        case .tooMany(let what, let limit): "too many \(what): \(limit)"
        case .diskFull(let free, let least): "the disk has \(free) bytes left; at least \(least) must stay free (data.minFree)"
        default: "a fact does not fit the store's state (\(self))"
        }
    }
}
