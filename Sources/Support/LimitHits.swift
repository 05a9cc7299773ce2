import Synchronization

/// Settings whose limits are counted when they are hit. Limits that end a connection for a reason of their own are counted by that ``CloseReason``.
package enum CountedLimit: String, Sendable, CaseIterable {
    case videoMessage = "limits.videoMessage"
    case audioMessage = "limits.audioMessage"
    case dataMessage = "limits.dataMessage"
    case partialMessages = "limits.partialMessages"
    case partialBytes = "limits.partialBytes"
    case messageBeforePublish = "limits.messageBeforePublish"
    case bytesBeforePublish = "limits.bytesBeforePublish"
    case streamName = "limits.streamName"
    case frameQueue = "limits.frameQueue"
    case publishersTotal = "limits.publishersTotal"
    case viewersPerStream = "limits.viewersPerStream"
    case hlsPlayers = "limits.hlsPlayers"
    case httpConnections = "limits.httpConnections"
    case httpPerAddress = "limits.httpPerAddress"
    case httpHead = "limits.httpHead"
    case httpBody = "limits.httpBody"
    /// One address, or all of HTTP, makes the server hold more than its share of limits.memory.
    case httpMemory = "limits.memory (HTTP)"
    case recordingQuota = "recording.quota"
    case recordingMinFree = "recording.minFree"
    case talkers = "talk.talkers"
    case listeners = "talk.listeners"
    case meshMembers = "apps.mesh.members"
    case members = "apps.members"
    case gatherings = "apps.gatherings"
}

/// How often limits were hit since start. Any thread; a lock for a moment, once per hit.
package final class LimitHits: Sendable {
    private let counts = Mutex<[CountedLimit: UInt64]>([:])

    package init() {}

    package var current: [CountedLimit: UInt64] { self.counts.withLock { $0 } }

    package func hit(_ limit: CountedLimit) { self.counts.withLock { $0[limit, default: 0] += 1 } }
}
