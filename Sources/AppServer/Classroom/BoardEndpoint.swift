import Access
import Apps
package import HTTPServer
import HTTPTypes
import Listening
import NIOCore
package import NIOHTTP1
import Playback
import Streaming
package import Support

/// `GET /board/<32 hex>` as a WebSocket: a whiteboard's page, JSON text both ways (``BoardFrame``, ``BoardWriter``).
///
/// | query | |
/// |---|---|
/// | `authorization` | the class's token, as clients of the class append it to the board's address |
/// | `ticket` | a ticket of ``AppTicketRoute``, instead of it |
/// | `roomId` | the class; if present, it must be the token's |
package struct BoardEndpoint: AppEndpoint {
    package static let what = "A whiteboard's connection"
    package let services: AppServices

    package init(_ services: AppServices) { self.services = services }

    private static let folder = "/board/"

    package func door(_ head: HTTPRequestHead) -> Door? {
        guard head.method == .GET, head.path.hasPrefix(Self.folder), Classroom.Board.isKey(head.path.dropFirst(Self.folder.count)),
            head.list("upgrade", contains: "websocket")
        else { return nil }
        return .board
    }

    package func route(_ head: HTTPRequestHead) -> String { "/board/{board}" }

    package func session(_ request: HTTPHandoffRequest) throws(APIError) -> @Sendable () -> any AppSession {
        try self.checkOrigin(PageRequest(request))
        let query = QueryParameters(String(request.head.query ?? ""))
        let token = try self.token(query)
        let asked = query.all("roomId")
        guard token.kind == GatheringKinds.classroom, asked.count <= 1,
            asked.allSatisfy({ token.room == "\(Classes.prefix)\($0)" })
        else {
            throw APIError(.forbidden, .forbidden, "The token is for another class.")
        }
        let board = String(request.head.path.dropFirst(Self.folder.count))
        return { [services = self.services] in BoardSession(services, token, board) }
    }

    private func token(_ query: QueryParameters) throws(APIError) -> ChannelToken {
        let texts = query.all("authorization")
        guard texts.count + query.all("ticket").count == 1 else {
            throw APIError(.unauthorized, .unauthorized, "A whiteboard needs one authorization or one ticket.")
        }
        if let text = texts.first { return try self.services.verified(text) }
        guard let token = try self.services.credential(query) else {
            throw APIError(.unauthorized, .unauthorized, "A whiteboard needs one authorization or one ticket.")
        }
        return token
    }
}

/// One member's connection to a whiteboard. Loop-bound.
final class BoardSession: AppSession {
    private let services: AppServices
    private let token: ChannelToken
    private let board: String
    private var peer: AppPeer?
    private var runner: BoardRunner?

    init(_ services: AppServices, _ token: ChannelToken, _ board: String) {
        self.services = services
        self.token = token
        self.board = board
    }

    func opened(_ peer: AppPeer) {
        self.peer = peer
        guard let gathering = self.services.gatherings.find(self.token.room), let room = gathering.dialect as? Classroom,
            !room.gathering.hasEnded
        else { return self.refuse(peer, "no_such_class", "The class has ended.") }
        guard room.role(of: self.token.user) != nil else {
            return self.refuse(peer, "not_member", "Only members of the class see its whiteboards.")
        }
        guard room.board(key: self.board) != nil else {
            return self.refuse(peer, "no_such_board", "The class has no such whiteboard.")
        }
        self.runner = self.services.boards.join(peer, user: self.token.user, board: self.board, gathering)
        if self.runner == nil { self.refuse(peer, "no_such_board", "The whiteboard is just ending.") }
    }

    private func refuse(_ peer: AppPeer, _ code: String, _ message: String) {
        peer.send(ChannelWriter.error(nil, code: code, message))
        peer.close(4003, code)
    }

    func closed() {
        guard let peer = self.peer else { return }
        self.runner?.remove(peer.id)
    }

    func received(_ text: String) -> Bool {
        guard let peer = self.peer, let runner = self.runner else { return true }
        let frame: BoardFrame
        do throws(ChannelFrame.Problem) {
            frame = try BoardFrame.read(text)
        } catch {
            peer.send(ChannelWriter.error(error.ref, code: "invalid", "\(error.error)"))
            return false
        }
        let action: BoardRunner.Command.Action
        switch frame.body {
        case .ping:
            peer.send(ChannelWriter.pong(frame.ref))
            return true
        case .draw(let page, let stroke): action = .draw(page: page, stroke)
        case .clear(let page): action = .clear(page: page)
        }
        if !runner.submit(.init(action: action, user: self.token.user, peer: peer, ref: frame.ref)) {
            peer.send(ChannelWriter.error(frame.ref, code: "no_such_board", "The board has ended."))
        }
        return true
    }
}
