extension APIRoute {
    /// Every call of the API, as the server answers and its document lists them.
    static let all: [APIRoute] =
        Self.rooms + Self.snapshots + Self.members + Self.urls + Self.streams + Self.sessions + Self.reconnects + Self.events
        + Self.callbacks
        + Self.relayTasks
        + Self.recordings + Self.talk + Self.tokens
        + Self.gatherings + Self.server + Self.operations + Self.stats + Self.audit + Self.webhooks
}
