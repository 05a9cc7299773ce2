/// The result of asking clients to connect again.
package struct ReconnectOutcome: Sendable, Equatable {
    package var asked = 0
    /// Clients that did not announce support for reconnect requests.
    package var unable = 0

    package init() {}
}
