package import Access
import Apps
import Listening
import Logging
import Playback
package import RoomRegistry
package import Rooms
package import ServerConfiguration
package import Streaming
package import Support

/// The services that the apps' endpoints use. Any thread.
package final class AppServices: Sendable {
    let config: Live<ServerConfig>
    private let liveKeys: Live<KeyRing>
    let rooms: RoomRegistry
    let admission: RoomAdmission
    let streams: LiveStreams
    let control: LiveControl
    let connections: Connections
    let memory: MemoryBudget
    let sweepers: LoopSweepers
    let pages: PageRules
    package let counters = AppCounters()
    package let mesh: MeshService
    package let gatherings: Gatherings
    package let boards: Boards
    /// Nil when RongCloud is not configured.
    let rongCloud: RongCloudBridge?
    let externalBoards: ExternalBoards?
    /// Whether a stream is being recorded.
    let isRecording: @Sendable (StreamPath) -> Bool
    let tickets: OneTimeTickets<ChannelToken>
    /// Throttles the log lines about refusals.
    private let floods = LogRateLimiters()

    package init(
        _ config: Live<ServerConfig>, _ keys: Live<KeyRing>, _ rooms: RoomRegistry, admission: RoomAdmission, streams: LiveStreams,
        control: LiveControl,
        connections: Connections, memory: MemoryBudget, sweepers: LoopSweepers,
        mute: @escaping @Sendable (RoomID, String, Bool) async -> Void, post: @escaping OutboundPost,
        isRecording: @escaping @Sendable (StreamPath) -> Bool
    ) {
        self.config = config
        self.liveKeys = keys
        self.rooms = rooms
        self.admission = admission
        self.streams = streams
        self.control = control
        self.connections = connections
        self.memory = memory
        self.sweepers = sweepers
        self.pages = PageRules(config)
        self.tickets = OneTimeTickets(ClusterKey(config.current))
        let rongCloud = RongCloudBridge(config.apps.rongcloud, post: post, counters: self.counters, log: connections.log)
        self.rongCloud = rongCloud
        let externalBoards = ExternalBoards(config.apps, post: post, log: connections.log)
        self.externalBoards = externalBoards
        self.isRecording = isRecording
        self.gatherings = Gatherings(
            rooms, kinds: GatheringKinds(config.apps), most: config.apps.gatherings, limits: connections.counters.limits,
            log: connections.log,
            mute: mute,
            observe: { change in
                rongCloud?.applied(change)
                externalBoards?.applied(change)
            })
        self.boards = Boards(rooms)
        self.gatherings.whenChanged { [weak boards = self.boards] in boards?.follow($0) }
        self.mesh = MeshService(
            members: config.apps.meshMembers, rooms: config.apps.gatherings, counters: self.counters, limits: connections.counters.limits)
    }

    var keys: KeyRing { self.liveKeys.current }
    var rules: AdmissionRules { self.admission.rules }

    /// Restores the gatherings from the store. Call before the ports open.
    package func start() async throws {
        let sinceMs = try await self.gatherings.start()
        guard let cloud = self.rongCloud else { return }
        for runner in self.gatherings.of(GatheringKinds.classroom) { cloud.resume(runner, sinceMs: sinceMs) }
    }

    /// Follows the rooms: a room that ends also ends its gatherings.
    package func handle(_ events: [EventMark]) {
        self.gatherings.handle(events)
        self.mesh.handle(events)
    }

    package func kick(_ user: String, from room: RoomID) {
        self.gatherings.kick(user, from: room)
        _ = self.mesh.kick(user, from: room.rawValue)
    }

    /// Whiteboards with at least one viewer.
    package var boardCount: Int { self.boards.count }

    var log: Logger { self.connections.log }

    var socketLimits: AppSocketLimits {
        var limits = AppSocketLimits()
        limits.messageBytes = self.config.apps.messageBytes
        limits.messageRate = self.config.apps.messageRate
        limits.backlogBytes = self.config.apps.backlogBytes
        return limits
    }

    /// Logs a refusal or a cut. Lines are limited to one a second for each message and reason (`reason`, `code`, `setting` or `status`, of which
    /// there are few); each reports how many were held back.
    func noteRefusal(_ message: String, _ facts: [String: String]) {
        let reason = ["reason", "code", "setting", "status"].compactMap { facts[$0] }.joined(separator: " ")
        guard let held = self.floods.pass("\(message) \(reason)", nowMs: LoopSweeper.nowMs) else { return }
        let metadata: Logger.Metadata = facts.mapValues { "\($0)" }
        self.log.write("\(message)", metadata, at: .warning, heldBack: held)
    }
}
