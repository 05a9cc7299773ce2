package import Access
package import Logging
package import Notifications
package import Relay
package import RoomRegistry
package import Rooms
package import ServerConfiguration
package import Streaming
package import Support
import Synchronization
import Talk

/// The talk channels of all rooms, on one clock per core, up to 16. Any thread.
package final class Talkback: Sendable {
    /// Mixes in Opus, under the same paths as those in AAC, which are ordinary streams.
    let opusMixes = StreamRegistry(isListed: false)
    private let settings: Live<ServerConfig>
    let rooms: RoomRegistry
    let rules: AdmissionRules
    let streams: LiveStreams
    let events: EventHub
    let limits: LimitHits
    let log: Logger
    private let clocks: [TalkClock]
    private let channels = Mutex<[RoomID: TalkChannel]>([:])
    /// Totals of channels that are over.
    private let ended = Mutex(TalkTotals())

    package init(
        _ settings: Live<ServerConfig>, _ rooms: RoomRegistry, _ rules: AdmissionRules, _ streams: LiveStreams, _ events: EventHub,
        limits: LimitHits, log: Logger
    ) {
        self.settings = settings
        self.rooms = rooms
        self.rules = rules
        self.streams = streams
        self.events = events
        self.limits = limits
        self.log = log
        self.clocks = (0..<max(1, min(streams.allLoops.count, 16))).map { _ in TalkClock(log: log) }
    }

    var config: ServerConfig.Talk { self.settings.talk }

    package func registry(of codec: TalkCodec) -> StreamRegistry { codec == .opus ? self.opusMixes : self.streams.registry }

    package func find(_ roomID: RoomID) -> TalkChannel? { self.channels.withLock { $0[roomID] } }

    /// Returns the room's channel, created if needed. `settings` and `members`: the room's own.
    func use(_ roomID: RoomID, settings: TalkSettings, members: [TalkMemberSetting]) -> TalkChannel {
        self.channels.withLock { channels in
            if let channel = channels[roomID] { return channel }
            let clock = self.clocks.min { $0.load < $1.load } ?? self.clocks[0]
            let channel = TalkChannel(roomID, settings: settings, talkback: self, clock: clock)
            channel.set(members)
            channels[roomID] = channel
            return channel
        }
    }

    /// Ends the channel of a room that was over before the channel was ready.
    func end(_ roomID: RoomID) {
        guard let channel = self.channels.withLock({ $0.removeValue(forKey: roomID) }) else { return }
        channel.close(.roomEnded)
        self.ended.withLock { $0.add(channel.totals.totals) }
    }

    /// Ends the channels of rooms that are over or forbidden. On the registry's queue; does not block.
    package func handle(_ events: [EventMark]) {
        for event in events {
            guard let roomID = event.roomID, let reason = event.kind.endOfTalk else { continue }
            guard let channel = self.channels.withLock({ $0.removeValue(forKey: roomID) }) else { continue }
            channel.close(reason)
            self.ended.withLock { $0.add(channel.totals.totals) }
        }
    }

    /// Mixes with listeners now, and totals since the server started.
    package var totals: (mixes: Int, totals: TalkTotals) {
        var sum = (mixes: 0, totals: self.ended.withLock { $0 })
        sum.totals.delayMs = 0
        for channel in self.channels.withLock({ Array($0.values) }) {
            let part = channel.totals
            sum.mixes += part.mixes
            sum.totals.add(part.totals)
        }
        return sum
    }

    /// Throws the user out of the room's channel, if there is one.
    package func kick(_ user: String, from roomID: RoomID, by actor: Actor?) {
        guard let channel = self.find(roomID), let id = try? ParticipantID(user) else { return }
        _ = channel.kick(id, by: actor)
    }

    /// Removes a user from all mixes of the room's channel, or restores it: stored first, then applied. Does nothing for users that cannot talk.
    package func mute(_ user: String, in roomID: RoomID, _ isMuted: Bool) async throws(RegistryError) {
        guard let id = try? ParticipantID(user) else { return }
        _ = try await self.rooms.changeTalkMember(user, of: roomID, { $0.isMuted = isMuted }) { [weak self] setting in
            self?.find(roomID)?.set(setting, of: id, by: nil)
        }
    }

    /// Number of channels that tick.
    var ticking: Int { self.clocks.reduce(0) { $0 + $1.load } }

    package func stop() { for channel in self.channels.exchange([:]).values { channel.close(.serverShutdown) } }
}

extension RoomEvent.Kind {
    /// The reason why talk ends with this event; nil: it continues.
    fileprivate var endOfTalk: CloseReason? {
        switch self {
        case .roomClosed, .roomExpired, .roomDeleted: .roomEnded
        case .roomForbidden: .forbidden
        default: nil
        }
    }
}
