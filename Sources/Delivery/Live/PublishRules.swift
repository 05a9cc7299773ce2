package import Relay
package import Rooms
package import ServerConfiguration

extension TakeoverRule {
    package init(_ config: ServerConfig.Rooms, app: String) {
        switch config.duplicatePublishByApp[app] ?? config.duplicatePublish {
        case .identity: self = .sameIdentity
        case .reject: self = .nobody
        case .takeover: self = .anybody
        }
    }
}

extension GracePeriods {
    /// The registry ends a silent publisher when its room's patience ends. Should it fail to do so, the stream does, this much later.
    private static let fallbackMs: Int64 = 2_000

    package init(_ policy: RoomPolicy) {
        self.init()
        self.brokenPipeMs = policy.graceMs
        self.cleanStopMs = policy.cleanStopMs
        self.quietMs = policy.mediaIdleMs
        self.flushMs = 1_000
        self.mediaIdleMs = policy.mediaIdleMs + policy.idleGraceMs + Self.fallbackMs
        self.pausedMs = policy.mediaIdleMs + policy.pauseGraceMs + Self.fallbackMs
    }
}
