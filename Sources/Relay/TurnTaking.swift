/// Puts off what is left of long work until the loop has looked at its sockets. Loop-bound; owned by the server's part on the loop.
///
/// A loop runs all tasks that are due before it looks at its sockets again, those too that its tasks begin: neither `execute` nor a timer
/// that is due soon gives the others their turn.
package protocol TurnTaking: AnyObject {
    /// Once, on the loop: after a look at its sockets, or at the end of the turns.
    func next(_ task: @escaping () -> Void)
}
