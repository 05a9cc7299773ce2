package import HTTPServer
import HTTPTypes
package import Hummingbird
package import NIOCore
package import Outbound
package import RoomRegistry
package import Rooms
package import ServerConfiguration
package import Support

/// Sends calls on to the node that has what they are about. They go as they came, credentials included: all nodes know the same ones, and each
/// checks for itself.
package struct NodeForwarder: Sendable {
    let rooms: RoomRegistry
    let client: OutboundClient

    package init(_ rooms: RoomRegistry, _ client: OutboundClient) {
        self.rooms = rooms
        self.client = client
    }

    /// Names the node that sent a call on. Such a call is not sent on again.
    static let sender = HTTPField.Name("X-Earshot-Node")
    /// Up to the answer's head. A picture may take seconds to make.
    private static let patience = Duration.seconds(30)

    /// The other node's answer; nil if this node carries the call out, as every node does where `home` is nil.
    func answer(
        _ home: RouteHome?, _ path: [JSONValue.Member], _ request: Request, _ body: ByteBuffer
    ) async throws(APIError) -> APIAnswer? {
        guard let thing = home?.thing(path) else { return nil }
        return try await self.answer(of: thing, request, body).map { APIAnswer($0) }
    }

    /// The answer of the node that has this session, to a request at the session's own address, which says who may ask; nil if no other node has it.
    package func answer(ofSession number: UInt64, _ request: Request, _ body: ByteBuffer) async throws(APIError) -> Response? {
        try await self.answer(of: .node(Int64(clamping: number >> SessionNumber.nodeShift)), request, body, passesCredentials: false)
    }

    private func answer(
        of thing: NodeThing, _ request: Request, _ body: ByteBuffer, passesCredentials: Bool = true
    ) async throws(APIError) -> Response? {
        guard self.rooms.isShared else { return nil }
        // While the database is away, what runs here is still answered for.
        guard let node = try? await self.rooms.otherNode(having: thing) else { return nil }
        let what = "This is on the node \(node.name)"
        if let name = Self.sender, let sender = request.headers[name] {
            throw APIError.unavailable("\(what), and no longer where the node \(sender.prefix(NodeName.longest)) looked for it.")
        }
        guard node.state == .running else { throw APIError.unavailable("\(what), which is \(node.state.rawValue).") }
        guard let address = node.address else {
            throw APIError.unavailable("\(what), which names no address to the others (its setting cluster.address). Call that node.")
        }
        let answer: NodeReply
        do throws(OutboundError) {
            answer = try await self.client.forward(
                request.method.rawValue, to: address + Self.target(request), headers: self.headers(request, passesCredentials), body: body,
                timeout: Self.patience)
        } catch {
            throw APIError.unavailable("\(what), which did not answer: \(error). The call may have been carried out there.")
        }
        return Self.response(answer)
    }

    /// Tells the other nodes where they reach this one: as the settings say, or where its HTTP port listens, unless that is on all addresses.
    package static func announce(_ rooms: RoomRegistry, _ config: ServerConfig, http: HostPort) async throws(RegistryError) {
        try await rooms.announceAddress(config.cluster.address ?? (http.isEverywhere ? nil : "http://\(http)"))
    }

    /// The path and query: a target in HTTP/1.1's absolute form (RFC 9112 §3.2.2) names a host too.
    private static func target(_ request: Request) -> String {
        request.uri.path + (request.uri.query.map { "?\($0)" } ?? "")
    }

    private func headers(_ request: Request, _ passesCredentials: Bool) -> [(name: String, value: String)] {
        var headers = Self.passed(request.headers.map { (name: $0.name.rawName, value: $0.value) })
        if !passesCredentials { headers.removeAll { ["authorization", "cookie"].contains($0.name.lowercased()) } }
        // Logins of browsers are tied to the name that they asked for.
        if let authority = request.head.authority { headers.append((name: "Host", value: authority)) }
        if let name = Self.sender { headers.append((name: name.rawName, value: self.rooms.nodeName ?? "")) }
        return headers
    }

    /// The fields without those of one connection, which a Connection field names (RFC 9110 §7.6.1), and those that each server sets anew.
    private static func passed(_ fields: [(name: String, value: String)]) -> [(name: String, value: String)] {
        let named = fields.filter { $0.name.lowercased() == "connection" }.flatMap { $0.value.lowercased().split(separator: ",") }
        let dropped = self.ofConnection.union(named.map { $0.filter { !$0.isWhitespace } })
        return fields.filter { !dropped.contains($0.name.lowercased()) }
    }

    private static func response(_ answer: NodeReply) -> Response {
        var headers = HTTPFields()
        for (name, value) in self.passed(answer.headers) {
            if let name = HTTPField.Name(name) { headers.append(HTTPField(name: name, value: value)) }
        }
        let length = answer.headers.first { $0.name.lowercased() == "content-length" }.flatMap { Int($0.value) }
        let body = ResponseBody(contentLength: length) { writer in
            for try await part in answer.body { try await writer.write(part) }
            try await writer.finish(nil)
        }
        return Response(status: .init(code: answer.status), headers: headers, body: body)
    }

    private static let ofConnection: Set<String> = [
        "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "host", "content-length", "date",
        "server", "x-request-id", "x-content-type-options", "expect", "x-forwarded-for", "forwarded", "x-earshot-node",
    ]
}
