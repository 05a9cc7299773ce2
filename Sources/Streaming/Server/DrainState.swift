/// How the server is to end.
package struct DrainRequest: Sendable {
    /// Nil: the limit in the settings.
    package var timeoutMs: Int64?
    /// Where clients are asked to connect again. Nil: as in the settings.
    package var reconnectTo: String?
    /// Whether the program starts again, with the listeners of this one.
    package var restarts = false

    package init(timeoutMs: Int64? = nil, reconnectTo: String? = nil, restarts: Bool = false) {
        self.timeoutMs = timeoutMs
        self.reconnectTo = reconnectTo
        self.restarts = restarts
    }
}

/// A drain under way.
package struct DrainState: Sendable {
    package let leftMs: Int64
    package let pushes: Int
    package let viewers: Int
    /// Clients that were asked to reconnect.
    package let asked: Int
    /// Whether the server starts again afterwards.
    package let restarts: Bool
}

package enum DrainStart: Sendable {
    case begun(DrainState)
    /// A drain was already under way, so none was started.
    case alreadyUnderWay(DrainState)
    /// It could not start again; none was started. Each message names what is wrong and what is expected.
    case cannotRestart([String])
}
