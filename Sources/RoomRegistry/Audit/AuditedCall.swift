package import Rooms
import Synchronization

/// A call of the API whose line in the audit trail is to be stored. Any thread.
///
/// The registry stores the line in the transaction of the call's first change, so that there is no change without its line. It finds the call by a
/// task-local value, so that the many operations need not pass it on.
package final class AuditedCall: Sendable {
    /// Nil outside of calls, and in calls that leave no line.
    @TaskLocal package static var current: AuditedCall?

    private struct State {
        var line: AuditLine
        /// The stored line.
        var id: Int64?
        var isOver = false
    }

    private let state: Mutex<State>

    package init(_ line: AuditLine) { self.state = Mutex(State(line: line)) }

    /// Adds facts about the call.
    package func update(_ body: (inout AuditLine) -> Void) { self.state.withLock { body(&$0.line) } }

    /// The line for a transaction to store; nil if one has stored it, or the call is over.
    package var due: AuditLine? { self.state.withLock { $0.isOver || $0.id != nil ? nil : $0.line } }

    func stored(as id: Int64) { self.state.withLock { $0.id = id } }

    /// Discards the call's line: the call only repeats an earlier answer.
    package func discard() { self.state.withLock { $0.isOver = true } }

    /// Ends the call. Returns the line in its last form, and its id if it is stored; nil if the call leaves no line.
    func end() -> (line: AuditLine, id: Int64?)? {
        self.state.withLock { state in
            guard !state.isOver else { return nil }
            state.isOver = true
            return (state.line, state.id)
        }
    }
}
