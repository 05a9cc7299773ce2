package import Access
package import AppServer
package import ControlAPI
package import Links
import Listening
package import Logging
package import Notifications
package import Outbound
package import Packaging
package import Playback
package import RTMPServer
package import RoomRegistry
import Rooms
package import ServerConfiguration
package import Sockets
package import Statistics
package import Streaming
package import Support
package import Talkback

/// The services of one server, each created with its dependencies. Any thread.
package final class ServerParts: Sendable {
    /// The present settings and keys; a reload replaces them.
    package let live: Live<ServerConfig>
    package let liveKeys: Live<KeyRing>
    package let rooms: RoomRegistry
    package let memory: MemoryBudget
    package let streams: LiveStreams
    package let connections: Connections
    /// The server's own requests: hooks and webhooks.
    package let outbound: OutboundClient
    package let rules: AdmissionRules
    package let pushes = ActivePushes()
    package let admission: RoomAdmission
    package let control: LiveControl
    package let events = EventHub()
    /// The health of webhooks, and the log lines about it.
    package let webhookLog: WebhookLog
    package let talk: Talkback
    package let recordings: Recordings
    package let remuxers: RemuxTable
    let packets: PacketTable
    package let webrtc: WebRTCServices
    package let links: LinkTable
    package let snapshots = SnapshotMaker()
    let storeWatch: StoreWatch
    /// Nil when the setting turns statistics off.
    package let statistics: Statistics?
    package let apps: AppServices
    package let api: APIServices
    package let rtmp: RTMPServices
    let playback: PlaybackServices
    /// Checks all deadlines on the event loops.
    let sweepers: LoopSweepers
    let readiness: Readiness
    package let log: Logger

    package init(
        config: ServerConfig, rooms: RoomRegistry, keys: KeyRing, group: SocketLoopGroup, figures: MetricFigures = MetricFigures(),
        log: Logger
    ) {
        let live = Live(config)
        let liveKeys = Live(keys)
        self.live = live
        self.liveKeys = liveKeys
        self.rooms = rooms
        self.log = log
        let memory = MemoryBudget(config.limits)
        let sweepers = LoopSweepers(group)
        let streams = LiveStreams(config, group: group, sweepers: sweepers, ledger: memory.ledger, log: log)
        let sessions = HLSSessions()
        let connections = Connections(live, pressures: streams.pressures, sweepers: sweepers, node: rooms.nodeNumber, log: log)
        self.sweepers = sweepers
        self.memory = memory
        self.streams = streams
        self.connections = connections
        self.outbound = OutboundClient(live)
        self.rules = AdmissionRules(live, liveKeys, outbound: self.outbound, log: log)
        self.admission = RoomAdmission(live, rooms, self.rules, memory, self.pushes, streams)
        self.control = LiveControl(rooms, streams, self.pushes, log: log)
        self.webhookLog = WebhookLog(log)
        let limits = connections.counters.limits
        self.talk = Talkback(live, rooms, self.rules, streams, self.events, limits: limits, log: log)
        self.recordings = Recordings(live, rooms, streams, memory.ledger, limits: limits, talk: self.talk, log: log)
        self.remuxers = RemuxTable(live, rooms, streams, memory.ledger, limits: limits, log: log) { [sessions] in sessions.play($0, $1) }
        self.packets = PacketTable(streams, memory.ledger, config.webrtc, frameQueueBytes: config.limits.frameQueueBytes, log: log)
        self.links = LinkTable(live, rooms, self.admission, connections)
        self.storeWatch = StoreWatch(log: log)
        self.statistics = Self.statistics(config, rooms, log)
        self.apps = AppServices(
            live, liveKeys, rooms, admission: self.admission, streams: streams, control: self.control, connections: connections,
            memory: memory, sweepers: sweepers,
            mute: { [talk = self.talk] room, user, isMuted in try? await talk.mute(user, in: room, isMuted) },
            post: { [outbound = self.outbound] url, headers, body, timeout in
                let answer = try await outbound.post(url: url, headers: headers, body: body, timeout: timeout, pool: "apps").get()
                return (answer.status, answer.body)
            }, isRecording: { [recordings = self.recordings] in recordings.isRecording($0) })
        self.api = APIServices(
            live, liveKeys, rooms, streams: streams, connections: connections, control: self.control, memory: memory,
            recordings: self.recordings, snapshots: self.snapshots, talk: self.talk, events: self.events,
            webhookLog: self.webhookLog, statistics: self.statistics,
            webhookTester: WebhookTester(
                live,
                sender: { WebhookSender(config: live.current, addresses: connections.addresses, keys: liveKeys.current) },
                outbound: self.outbound), others: [self.apps], figures: figures)
        figures.add { [remuxers = self.remuxers, links = self.links] sources in
            sources.windowBytes = { [weak remuxers] in remuxers?.windowBytes ?? 0 }
            sources.links = { [weak links] in (links?.publishing ?? 0, links?.received.reduce(0) { $0 &+ $1.bytes } ?? 0) }
        }
        self.rtmp = RTMPServices(live, streams, connections, self.admission, self.talk)
        self.playback = PlaybackServices(live, streams, connections, self.admission, self.remuxers, self.talk, sessions)
        self.webrtc = WebRTCServices(self.playback, self.packets)
        figures.add { [webrtc = self.webrtc] sources in
            sources.webrtc = { [weak webrtc] in webrtc?.metrics ?? MetricFigures.WebRTC() }
            sources.treatment = { [weak webrtc] in webrtc?.packets.treatment($0) }
            sources.badLines = { [weak webrtc] in webrtc?.badLines($0) ?? 0 }
        }
        self.readiness = Readiness(rooms: rooms, streams: streams, storeWatch: self.storeWatch)
        self.follow()
    }

    package var config: ServerConfig { self.live.current }
    package var keys: KeyRing { self.liveKeys.current }

    private static func statistics(_ config: ServerConfig, _ rooms: RoomRegistry, _ log: Logger) -> Statistics? {
        guard config.stats.enabled else { return nil }
        var settings = StatisticsSettings()
        settings.keepMs = config.stats.keepMs
        settings.maxRows = config.stats.maxRows
        // The store of rooms needs the remaining disk space.
        settings.hasSpace = { [weak rooms] in rooms.map { !$0.storeStatus.isShortOfDisk } ?? true }
        return Statistics(directory: config.data.directory, settings: settings, log: log)
    }

    /// Connects observers to the services that they follow. Weak where an observer holds that service.
    private func follow() {
        self.streams.whenPublished { [weak recordings = self.recordings] in recordings?.publishBegan($0, $1) }
        self.streams.whenPublished { [weak links = self.links] stream, _ in links?.publishBegan(stream) }
        self.streams.whenPublished { [weak remuxers = self.remuxers] stream, _ in remuxers?.publishBegan(stream) }
        self.streams.whenPublished { [weak packets = self.packets] stream, _ in packets?.publishBegan(stream) }
        if let statistics = self.statistics {
            self.streams.observeSessions(statistics)
            self.streams.whenPublished { [weak statistics] _, grant in statistics?.published(grant.path.description, room: grant.roomID) }
        }
        self.streams.whenWanted { [weak links = self.links] in links?.wanted($0) ?? false }
        self.memory.whenShort { [remuxers = self.remuxers] in await remuxers.dropUnwatched() }
        self.memory.whenShort { [streams = self.streams] in await streams.sweep() }
        self.control.whenPlaysEnd { [sessions = self.playback.sessions] in sessions.end($0, $1) }
        self.control.whenPlaysEnd { [weak webrtc = self.webrtc] in webrtc?.end($0, $1) }
        self.control.whenKicked { [weak apps = self.apps] room, user, _ in apps?.kick(user, from: room) }
        self.control.whenKicked { [talk = self.talk] room, user, actor in talk.kick(user, from: room, by: actor) }
    }

    /// Connects the services to the registry's decisions and events; `wake` starts the sender of webhooks. Call before the registry starts.
    func handleRooms(wake: @escaping @Sendable () -> Void) {
        self.rooms.update { $0.readsEvents = { [events = self.events] in events.subscribers > 0 } }
        self.control.handleRoomOutcomes()
        self.control.observeEvents { [events = self.events] in events.publish($0) }
        self.control.observeMarks { _ in wake() }
        self.control.observeMarks { [figures = self.api.figures] in figures.happened($0) }
        self.control.observeMarks { [talk = self.talk] in talk.handle($0) }
        self.control.observeMarks { [weak apps = self.apps] in apps?.handle($0) }
        self.control.observeOutcomes { [recordings = self.recordings] in recordings.handle($0) }
    }

    /// Ends background work besides the connections, and the loops' own work.
    func stop() {
        self.talk.stop()
        self.remuxers.stop()
        self.packets.stop()
        self.streams.stop()
    }
}

extension WebRTCServices {
    /// Its counts as the metrics show them.
    fileprivate var metrics: MetricFigures.WebRTC {
        let counts = self.figures
        var metrics = MetricFigures.WebRTC()
        metrics.encoders = self.packets.encoders.count
        (metrics.offers, metrics.connected, metrics.failed) = (counts.offers, counts.connected, counts.failed)
        (metrics.repeatedPackets, metrics.keyframeRequests) = (counts.repeats, counts.keyframeRequests)
        (metrics.strangeDatagrams, metrics.lostDatagrams) = (self.port.dropped, self.port.lost)
        return metrics
    }
}
