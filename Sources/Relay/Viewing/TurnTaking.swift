/// Defers the rest of long work until the loop has polled its sockets. Loop-bound; owned by the server's part on the loop.
///
/// A loop runs all due tasks before it polls its sockets again, including tasks that those tasks start. Neither `execute` nor a timer that
/// is due soon gives the sockets a turn.
package protocol TurnTaking: AnyObject {
    /// Runs the task once, on the loop, after its sockets were polled or when the turns end.
    func next(_ task: @escaping () -> Void)
}
