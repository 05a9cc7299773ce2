/// The result of asking clients to connect again.
package struct ReconnectOutcome: Sendable, Equatable {
    package var asked = 0
    /// Clients that cannot be asked: see ``LiveConnection/askToReconnect(to:)``.
    package var unable = 0
}
