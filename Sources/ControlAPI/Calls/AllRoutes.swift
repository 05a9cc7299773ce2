extension APIRoute {
    /// Every call of the API, in the order of the document.
    static let all: [APIRoute] =
        Self.rooms + Self.snapshots + Self.members + Self.urls + Self.streams + Self.sessions + Self.reconnects + Self.events
        + Self.callbacks
        + Self.relayTasks
        + Self.recordings + Self.talk + Self.tokens
        + Self.gatherings + Self.server + Self.operations + Self.nodes + Self.stats + Self.audit + Self.webhooks
}
