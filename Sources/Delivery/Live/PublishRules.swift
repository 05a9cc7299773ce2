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
    package init(_ policy: RoomPolicy) {
        self.init()
        self.brokenPipeMs = policy.graceMs
        self.cleanStopMs = policy.cleanStopMs
        self.quietMs = policy.mediaIdleMs
        self.flushMs = 1_000
        // The registry ends a silent publisher when its room's patience ends; the stream does only if the registry has not.
        self.mediaIdleMs = policy.mediaIdleMs + policy.idleGraceMs + RoomPolicy.relayFallbackMs
        self.pausedMs = policy.mediaIdleMs + policy.pauseGraceMs + RoomPolicy.relayFallbackMs
    }
}
