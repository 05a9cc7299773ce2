import Access
import Apps
package import HTTPServer
import HTTPTypes
import Listening
import NIOCore
package import NIOHTTP1
import Playback
import Rooms
import ServerConfiguration
import Streaming
package import Support

/// `GET /channel?token=` or `?ticket=`: a member's WebSocket, JSON text both ways (``ChannelFrame``, ``ChannelWriter``). The token is a
/// ``ChannelToken``, a ticket comes from ``AppTicketRoute``.
package struct ChannelEndpoint: AppEndpoint {
    package static let what = "A channel connection"
    package let services: AppServices

    package init(_ services: AppServices) { self.services = services }

    package func door(_ head: HTTPRequestHead) -> Door? { head.method == .GET && head.path == "/channel" ? .channel : nil }

    package func route(_ head: HTTPRequestHead) -> String { "/channel" }

    package func session(_ request: HTTPHandoffRequest) throws(APIError) -> @Sendable () -> any AppSession {
        try self.checkOrigin(PageRequest(request))
        let query = QueryParameters(String(request.head.query ?? ""))
        guard let token = try self.services.credential(query) else {
            throw APIError(.unauthorized, .unauthorized, "A channel needs a token or a ticket: /channel?token=….")
        }
        guard GatheringKinds.all.contains(token.kind) else {
            throw APIError(FieldError("token", "", "its kind is \(token.kind); expected \(GatheringKinds.all.joined(separator: " or "))"))
        }
        let room = try self.room(token, query)
        if let problem = GatheringLimits.problem(ofName: token.name) { throw APIError(FieldError("token", "", "its name: \(problem)")) }
        return { [gatherings = self.services.gatherings] in ChannelSession(gatherings, token, room) }
    }

    /// The token's room; for a guest's token for all machines, the room in the query.
    private func room(_ token: ChannelToken, _ query: QueryParameters) throws(APIError) -> RoomID {
        do throws(FieldError) {
            guard token.room == GatheringKinds.everyMachine else { return try RoomID(checking: token.room) }
            let asked = query.all("room")
            guard asked.count == 1, let id = asked.first, id.hasPrefix(GatheringKinds.machinePrefix) else {
                throw FieldError("room", asked.first ?? "", "expected one, a machine's, such as \(GatheringKinds.machinePrefix)1")
            }
            return try RoomID(checking: id)
        } catch {
            throw APIError(error)
        }
    }
}

/// One member's connection. Loop-bound.
final class ChannelSession: AppSession {
    private let gatherings: Gatherings
    private let token: ChannelToken
    private let room: RoomID
    private var peer: AppPeer?
    private var runner: GatheringRunner?

    init(_ gatherings: Gatherings, _ token: ChannelToken, _ room: RoomID) {
        self.gatherings = gatherings
        self.token = token
        self.room = room
    }

    func opened(_ peer: AppPeer) {
        self.peer = peer
        let command = GatheringRunner.Command(
            input: .connect(id: self.token.user, name: self.token.name, role: self.token.role, peer.id)
        ) { outcome in
            guard case .failure(let failure) = outcome else { return }
            peer.send(ChannelWriter.error(nil, code: failure.code, failure.message))
            peer.close(4003, failure.code)
        }
        // A gathering that is ending accepts nobody; the next attempt opens a new one.
        var over: GatheringRunner?
        for _ in 0..<3 {
            guard let runner = self.gatherings.open(self.token.kind, self.room, after: over) else { break }
            runner.add(peer)
            if runner.submit(command) {
                self.runner = runner
                return
            }
            over = runner
        }
        guard !GatheringKinds.ownsRoom(self.token.kind) else {
            peer.send(ChannelWriter.error(nil, code: "no_such_room", "There is no \(self.token.kind) in room \(self.room)."))
            return peer.close(4003, "no such room")
        }
        peer.send(ChannelWriter.error(nil, code: "unavailable", "The server has as many gatherings as it takes."))
        peer.close(1013, "too many gatherings")
    }

    func closed() {
        guard let peer = self.peer else { return }
        self.runner?.submit(.init(input: .disconnect(peer.id)))
    }

    func received(_ text: String) -> Bool {
        guard let peer = self.peer, let runner = self.runner else { return true }
        let frame: ChannelFrame
        do throws(ChannelFrame.Problem) {
            frame = try ChannelFrame.read(text)
        } catch {
            peer.send(ChannelWriter.error(error.ref, code: "invalid", "\(error.error)"))
            return false
        }
        let (user, bytes) = (self.token.user, text.utf8.count)
        switch frame.body {
        case .ping: peer.send(ChannelWriter.pong(frame.ref))
        case .queueList: peer.send(ChannelWriter.ack(frame.ref, ChannelWriter.list(runner.gathering.queue)))
        case .send(let to, let object, let content):
            self.submit(.say(from: user, to: to, object: object, content: content), frame.ref, bytes, peer, runner)
        case .command(let to, let content): self.submit(.command(from: user, to: to, content: content), frame.ref, bytes, peer, runner)
        case .queueOffer(let value): self.submit(.offer(from: user, value: value), frame.ref, bytes, peer, runner)
        case .queuePoll(let key): self.submit(.poll(from: user, key: key), frame.ref, bytes, peer, runner)
        case .ticketOpen(let to, let kind, let payload):
            let id = SecretText.hex((0..<16).map { _ in UInt8.random(in: 0...255) })
            self.submit(.ask(from: user, to: to, kind: kind, payload: payload, newID: id), frame.ref, bytes, peer, runner)
        case .ticketAnswer(let id, let isApproved):
            self.submit(.answer(from: user, ticket: id, isApproved: isApproved), frame.ref, bytes, peer, runner)
        }
        return true
    }

    /// The answer follows the frames that the input causes. `bytes`: the frame's size.
    private func submit(_ input: Gathering.Input, _ ref: JSONValue?, _ bytes: Int, _ peer: AppPeer, _ runner: GatheringRunner) {
        var command = GatheringRunner.Command(input: input) { outcome in
            switch outcome {
            case .success: peer.send(ChannelWriter.ack(ref))
            case .failure(let failure): peer.send(ChannelWriter.error(ref, code: failure.code, failure.message))
            }
        }
        command.sender = peer.id
        command.bytes = bytes
        if !runner.submit(command) { command.done(.failure(.refused(.ended))) }
    }
}
