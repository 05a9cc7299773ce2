/// The result of asking clients to connect again.
package struct ReconnectOutcome: Sendable, Equatable {
    package var asked = 0
    /// Clients that have not said that they can.
    package var unable = 0

    package init() {}
}
