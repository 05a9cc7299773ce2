import Access
import NIOCore
import RTMP
import Relay
package import Rooms
import ServerConfiguration
import Support
import Synchronization
package import Talk

/// The talk channels of all rooms, on one clock per core, up to 16. Any thread.
package final class Talkback: Sendable {
    /// Mixes in Opus, under the same paths as those in AAC, which are ordinary streams.
    let opusMixes = StreamRegistry(isListed: false)
    private let clocks: [TalkClock]
    private let main: StreamRegistry
    private let channels = Mutex<[RoomID: TalkChannel]>([:])
    /// Totals of channels that are over.
    private let ended = Mutex(TalkTotals())

    init(main: StreamRegistry, cores: Int) {
        self.main = main
        self.clocks = (0..<max(1, min(cores, 16))).map { _ in TalkClock() }
    }

    func registry(of codec: TalkCodec) -> StreamRegistry { codec == .opus ? self.opusMixes : self.main }

    package func find(_ roomID: RoomID) -> TalkChannel? { self.channels.withLock { $0[roomID] } }

    /// Returns the room's channel, created if needed. `settings` and `members`: the room's own.
    func use(_ roomID: RoomID, settings: TalkSettings, members: [TalkMemberSetting], core: ServerCore) -> TalkChannel {
        self.channels.withLock { channels in
            if let channel = channels[roomID] { return channel }
            let clock = self.clocks.min { $0.load < $1.load } ?? self.clocks[0]
            let channel = TalkChannel(roomID, settings: settings, core: core, clock: clock)
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
    package func handle(_ events: [RoomEvent]) {
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
        for channel in self.channels.withLock({ Array($0.values) }) {
            let part = channel.totals
            sum.mixes += part.mixes
            sum.totals.add(part.totals)
        }
        return sum
    }

    /// Number of channels that tick.
    var ticking: Int { self.clocks.reduce(0) { $0 + $1.load } }

    func stop() {
        let all = self.channels.withLock { channels in
            defer { channels = [:] }
            return Array(channels.values)
        }
        for channel in all { channel.close(.serverShutdown) }
    }
}

extension RoomEvent.Kind {
    /// Why talk ends with this event; nil: it continues.
    fileprivate var endOfTalk: CloseReason? {
        switch self {
        case .roomClosed, .roomExpired, .roomDeleted: .roomEnded
        case .roomForbidden: .forbidden
        default: nil
        }
    }
}

// MARK: - Admission

extension ServerCore {
    /// Checks credential and address of a talk channel's name.
    ///
    /// `push` is a publish to the same room on the same connection. Its pass is valid here, too, unless the name has a credential of its
    /// own; the app's credential, which is in every name's query, is the push's. `isCarried`: the push's pass was used.
    func checkTalk(
        _ request: AdmissionRequest, push: (request: AdmissionRequest, pass: AdmissionPass)?
    ) -> Result<(pass: AdmissionPass, isCarried: Bool), AdmissionRefusal> {
        var request = request
        if let push {
            let own = CredentialParameters.own(of: request.address.query, beside: push.request.address.query)
            guard own.hasCredential else {
                var carried = push.pass
                carried.role = carried.role ?? "host"
                return .success((carried, true))
            }
            request.address = TalkStreamName.address(request.address, query: own.query)
        }
        return self.admissions.check(request, nowSeconds: WallClock.seconds).map { ($0, false) }
    }

    /// Asks the hook, the room and its channel to admit a talker. Not on an event loop.
    func admitTalker(
        _ place: TalkStreamName, _ request: AdmissionRequest, _ checked: AdmissionPass
    ) async -> Result<PublishAdmission, AdmissionRefusal> {
        do throws(AdmissionRefusal) {
            let id: ParticipantID
            do throws(TalkAddressError) { id = try place.target.publisher() } catch {
                throw AdmissionRefusal(reason: .badName, message: "\(place.path) cannot be published: \(error).")
            }
            let pass = try await self.hooked(request, checked)
            let (channel, room) = try await self.talkChannel(place)
            if let refusal = self.keptOut([pass.user, id.rawValue], of: room.id) { throw refusal }
            do throws(TalkDenial) {
                let seat = try channel.admitTalker(
                    id, pass, role: TalkRole(pass, id: id.rawValue, owner: room.owner), connection: request.session)
                return .success(PublishAdmission(pass: pass, seat: seat))
            } catch {
                throw AdmissionRefusal(error, place)
            }
        } catch {
            return .failure(error)
        }
    }

    /// The same for a listener; its mix exists then, or soon.
    func admitListener(
        _ place: TalkStreamName, _ request: AdmissionRequest, _ checked: AdmissionPass, codec: TalkCodec, role: ConnectedRole?
    ) async -> Result<(pass: AdmissionPass, listening: TalkListening), AdmissionRefusal> {
        do throws(AdmissionRefusal) {
            let pass = try await self.hooked(request, checked)
            let (channel, room) = try await self.talkChannel(place)
            if let refusal = self.keptOut([pass.user], of: room.id) { throw refusal }
            do throws(TalkDenial) {
                return .success((pass, try channel.admitListener(place.target, pass, codec: codec, role: role)))
            } catch {
                throw AdmissionRefusal(error, place)
            }
        } catch {
            return .failure(error)
        }
    }

    /// Refuses users thrown out of the room, who must not return by its talk channel.
    private func keptOut(_ users: [String?], of room: RoomID) -> AdmissionRefusal? {
        for case let user? in users {
            guard let until = self.rooms.keptOut(user, of: room) else { continue }
            return .keptOut(user, of: room.rawValue, forMs: until - self.rooms.now)
        }
        return nil
    }

    private func hooked(_ request: AdmissionRequest, _ pass: AdmissionPass) async throws(AdmissionRefusal) -> AdmissionPass {
        guard self.admissions.hasHook(request.action) else { return pass }
        return try await self.admissions.ask(request, pass: pass).get()
    }

    /// The channel of a room whose state allows talk.
    private func talkChannel(_ place: TalkStreamName) async throws(AdmissionRefusal) -> (TalkChannel, Room) {
        if self.rooms.playRefusal(place.path) == .forbidden {
            throw AdmissionRefusal(reason: .forbidden, message: "\(place.path) is forbidden.")
        }
        let room: Room
        do throws(RegistryError) {
            room = try await self.rooms.room(place.roomID.rawValue)
            if room.allowsTalk(always: self.config.talk.always) {
                let channel = try await self.talkChannel(of: room)
                if !channel.isOver { return (channel, room) }
            }
        } catch .noSuchRoom {
            throw AdmissionRefusal(
                reason: .noRoom, message: "There is no room \(place.roomID), so there is no talk channel; create the room first.")
        } catch {
            throw AdmissionRefusal(reason: .registryUnavailable, message: "The room registry cannot be read at the moment; try again.")
        }
        throw AdmissionRefusal(
            reason: room.state == .forbidden ? .forbidden : .roomClosed,
            message: "Room \(room.id) is \(room.state.rawValue); its talk channel is open while the room is live.")
    }

    /// The room's channel, with the settings of the room and its participants.
    package func talkChannel(of room: Room) async throws(RegistryError) -> TalkChannel {
        if let channel = self.talk.find(room.id) { return channel }
        let settings = try await self.rooms.talkSettings(room.id) ?? self.config.talk.settings
        let members = try await self.rooms.talkMembers(room.id)
        let channel = self.talk.use(room.id, settings: settings, members: members, core: self)
        // The channel missed changes made before it could be found.
        do throws(RegistryError) {
            let now = try await self.rooms.room(room.id.rawValue)
            if !now.allowsTalk(always: true) { self.talk.end(room.id) }
        } catch .noSuchRoom {
            self.talk.end(room.id)
        }
        let standard = self.config.talk.settings
        try await self.rooms.notifyTalk(of: room.id) { nowSettings, nowMembers in
            channel.set(nowSettings ?? standard, by: nil)
            channel.set(nowMembers, instead: members)
        }
        return channel
    }
}

extension Room {
    /// Whether its state allows talk. `always`: even before it has been live.
    package func allowsTalk(always: Bool) -> Bool {
        switch self.state {
        case .live, .interrupted: true
        case .created: always
        case .forbidden, .expired, .closed: false
        }
    }
}

extension AdmissionPass {
    /// The credential's owner as a talk participant.
    package var participant: ParticipantID? { self.user.flatMap { try? ParticipantID($0) } }
}

extension TalkRole {
    /// The credential's role. Without one: host if the credential is verified and its user (or the name, if it has no user) owns the room,
    /// else guest.
    init(_ pass: AdmissionPass, id: String, owner: String?) {
        switch pass.role?.lowercased() {
        case "host", "owner", "anchor", "device", "publisher": self = .host
        case "cohost", "co-host", "assistant": self = .coHost
        case nil: self = pass.isVerified && owner != nil && (pass.user ?? id) == owner ? .host : .guest
        default: self = .guest
        }
    }
}

extension AdmissionRefusal {
    fileprivate init(_ denial: TalkDenial, _ place: TalkStreamName) {
        switch denial {
        case .closed: self.init(reason: .roomClosed, message: "The talk channel of room \(place.roomID) has ended.")
        case .refused(let refusal):
            let reason: CloseReason =
                switch refusal {
                case .talkersFull: .tooManyPublishers
                case .listenersFull: .tooManyViewers
                case .taken: .nameTaken
                case .flapping: .flapping
                case .forbidden: .forbidden
                }
            self.init(reason: reason, message: "\(place.path): \(refusal).")
        }
    }
}
