package import Access
import RTMP
import RoomRegistry
package import Rooms
import ServerConfiguration
package import Streaming
import Support
package import Talk

/// Admission of talkers and listeners to a room's channel.
extension Talkback: TalkGateway {
    package func check(
        _ request: AdmissionRequest, push: (request: AdmissionRequest, pass: AdmissionPass)?
    ) -> Result<(pass: AdmissionPass, isCarried: Bool), AdmissionRefusal> {
        var request = request
        if let push {
            let own = self.rules.parameters.own(of: request.address.query, beside: push.request.address.query)
            guard own.hasCredential else {
                var carried = push.pass
                carried.role = carried.role ?? "host"
                return .success((carried, true))
            }
            request.address = TalkStreamName.address(request.address, query: own.query)
        }
        return self.rules.check(request, nowSeconds: WallClock.seconds).map { ($0, false) }
    }

    package func resolved(
        _ name: TalkStreamName, _ request: AdmissionRequest
    ) async -> (name: TalkStreamName, request: AdmissionRequest) {
        // A registry that cannot be read, or has no such room, refuses the name itself.
        guard let room = try? await self.rooms.room(named: name.roomID.rawValue), room.id != name.roomID else { return (name, request) }
        let (own, path) = (name.of(room.id), name.of(room.id).path)
        var request = request
        request.address = request.address.naming(app: TalkStreamName.app, String(path.dropFirst(TalkStreamName.app.utf8.count + 1)))
        return (own, request)
    }

    package func admitTalker(
        _ name: TalkStreamName, _ request: AdmissionRequest, _ checked: AdmissionPass
    ) async -> Result<PublishAdmission, AdmissionRefusal> {
        do throws(AdmissionRefusal) {
            let id: ParticipantID
            do throws(TalkAddressError) { id = try name.target.publisher() } catch {
                throw AdmissionRefusal(reason: .badName, message: "\(name.path) cannot be published: \(error).")
            }
            let pass = try await self.hooked(request, checked)
            let (channel, room) = try await self.channel(name)
            if let refusal = self.keptOut([pass.user, id.rawValue], of: room.id) { throw refusal }
            do throws(TalkDenial) {
                let talker = try channel.admitTalker(id, pass, role: TalkRole(pass, id: id.rawValue, owner: room.owner))
                return .success(PublishAdmission(pass: pass, session: talker))
            } catch {
                throw self.refusal(error, name)
            }
        } catch {
            return .failure(error)
        }
    }

    package func admitListener(
        _ name: TalkStreamName, _ request: AdmissionRequest, _ checked: AdmissionPass, codec: TalkCodec, role: (any ConnectedRole)?
    ) async -> Result<(pass: AdmissionPass, listening: any TalkListening), AdmissionRefusal> {
        do throws(AdmissionRefusal) {
            let pass = try await self.hooked(request, checked)
            let (channel, room) = try await self.channel(name)
            if let refusal = self.keptOut([pass.user], of: room.id) { throw refusal }
            do throws(TalkDenial) {
                return .success((pass, try channel.admitListener(name.target, pass, codec: codec, role: role)))
            } catch {
                throw self.refusal(error, name)
            }
        } catch {
            return .failure(error)
        }
    }

    private func refusal(_ denial: TalkDenial, _ name: TalkStreamName) -> AdmissionRefusal {
        switch denial {
        case .refused(.talkersFull): self.limits.hit(.talkers)
        case .refused(.listenersFull): self.limits.hit(.listeners)
        default: break
        }
        return AdmissionRefusal(denial, name)
    }

    /// Refuses users thrown out of the room; they must not return through its talk channel.
    private func keptOut(_ users: [String?], of room: RoomID) -> AdmissionRefusal? {
        for case let user? in users {
            guard let until = self.rooms.keptOut(user, of: room) else { continue }
            return .keptOut(user, of: room.rawValue, forMs: until - self.rooms.now)
        }
        return nil
    }

    private func hooked(_ request: AdmissionRequest, _ pass: AdmissionPass) async throws(AdmissionRefusal) -> AdmissionPass {
        guard self.rules.mustAsk(request.action, pass) else { return pass }
        return try await self.rules.ask(request, pass: pass).get()
    }

    /// The channel of a room whose state allows talk.
    private func channel(_ name: TalkStreamName) async throws(AdmissionRefusal) -> (TalkChannel, Room) {
        if self.rooms.playRefusal(name.path) == .forbidden {
            throw .forbidden(name.path, self.rooms.playBan(name.path))
        }
        let room: Room
        do throws(RegistryError) {
            room = try await self.rooms.room(name.roomID.rawValue)
            if room.allowsTalk(always: self.config.always) {
                let channel = try await self.channel(of: room)
                if !channel.isOver { return (channel, room) }
            }
        } catch .noSuchRoom {
            throw AdmissionRefusal(
                reason: .noRoom, message: "There is no room \(name.roomID), so there is no talk channel; create the room first.")
        } catch {
            throw AdmissionRefusal(reason: .registryUnavailable, message: "The room registry cannot be read at the moment; try again.")
        }
        throw AdmissionRefusal(
            reason: room.state == .forbidden ? .forbidden : .roomClosed,
            message: "Room \(room.id) is \(room.state.rawValue); its talk channel is open while the room is live.")
    }

    /// The room's channel, with the settings of the room and its participants.
    package func channel(of room: Room) async throws(RegistryError) -> TalkChannel {
        if let channel = self.find(room.id) { return channel }
        let settings = try await self.rooms.talkSettings(room.id) ?? self.config.settings
        let members = try await self.rooms.talkMembers(room.id)
        let channel = self.use(room.id, settings: settings, members: members)
        // The channel missed changes made before it could be found.
        do throws(RegistryError) {
            let now = try await self.rooms.room(room.id.rawValue)
            if !now.allowsTalk(always: true) { self.end(room.id) }
        } catch .noSuchRoom {
            self.end(room.id)
        }
        let standard = self.config.settings
        try await self.rooms.notifyTalk(of: room.id) { nowSettings, nowMembers in
            channel.set(nowSettings ?? standard, by: nil)
            channel.set(nowMembers, instead: members)
        }
        return channel
    }
}

extension Room {
    /// Whether the room's state allows talk. `always`: even before it has been live.
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
    /// The credential's role. Without one: host if the credential is verified and its user (or the name, if it has no user) owns the room, else
    /// guest.
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
    fileprivate init(_ denial: TalkDenial, _ name: TalkStreamName) {
        switch denial {
        case .closed: self.init(reason: .roomClosed, message: "The talk channel of room \(name.roomID) has ended.")
        case .refused(let refusal):
            let reason: CloseReason =
                switch refusal {
                case .talkersFull: .tooManyPublishers
                case .listenersFull: .tooManyViewers
                case .nameTaken: .nameTaken
                case .flapping: .flapping
                case .forbidden: .forbidden
                }
            self.init(reason: reason, message: "\(name.path): \(refusal).")
        }
    }
}
