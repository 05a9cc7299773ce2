extension APIRoute {
    /// Every call of the API: what the server answers, and what its document lists.
    static let all: [APIRoute] =
        Self.rooms + Self.snapshots + Self.members + Self.urls + Self.streams + Self.sessions + Self.events + Self.callbacks
        + Self.relayTasks
        + Self.recordings + Self.talk + Self.tokens
        + Self.server
}
