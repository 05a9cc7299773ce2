import Support
import TestSupport

/// A peer of the mesh, and the frames that came so far, as "name data".
package struct MeshPeer: Sendable {
    package let socket: WebSocketClient

    package init(socket: WebSocketClient) { self.socket = socket }

    package static func open(_ server: some AddressedServer, _ target: String = "/mesh") async throws -> MeshPeer {
        MeshPeer(socket: try await WebSocketClient.open(server.addresses.http.port, target))
    }

    package static func joined(_ server: some AddressedServer, _ room: String = "r") async throws -> (peer: MeshPeer, id: String) {
        let peer = try await Self.open(server)
        try await peer.say("__join", "{\"room\":\"\(room)\"}")
        return (peer, try await peer.frame("_peers")["you"].string.orThrow())
    }

    package func say(_ name: String, _ data: String) async throws {
        try await self.socket.send("{\"eventName\":\"\(name)\",\"data\":\(data)}")
    }

    package var frames: [(name: String, data: JSON)] {
        get throws { try self.socket.messages.map { ($0["eventName"].string ?? "", $0["data"]) } }
    }

    /// The data of the first frame of this name, from the given one on.
    package func frame(_ name: String, after count: Int = 0) async throws -> JSON {
        var found: JSON?
        try await eventually("\(name)") {
            found = try self.frames.filter { $0.name == name }.dropFirst(count).first?.data
            return found != nil
        }
        return try found.orThrow()
    }
}
