import Crypto
import Foundation
import Logging
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import Synchronization
import TestSupport

/// RongCloud's server API as far as classes call it: checks each call by itself, from RongCloud's documents, and records it. Any thread.
final class RongCloudStandIn: Sendable {
    /// One call, as the stand-in read it.
    struct Call: Sendable {
        /// Without `.json`.
        let path: String
        let fields: [(name: String, value: String)]
        /// Empty for a call that RongCloud would accept.
        let problem: String

        subscript(_ name: String) -> String { self.fields.first { $0.name == name }?.value ?? "" }
        var content: JSON { JSON(try? JSONSerialization.jsonObject(with: Data(self["content"].utf8), options: .fragmentsAllowed)) }
    }

    static let appKey = "appkey1"
    static let secret = "a-secret-that-nobody-logs"
    static let publish = "/message/group/publish"

    /// The answer to a call that is good; nil: RongCloud's own.
    typealias Rule = @Sendable (Call) -> CannedServer.Answer?

    private struct State {
        var calls: [Call] = []
        var nonces: Set<String> = []
        var rule: Rule = { _ in nil }
    }

    private let state = Mutex(State())

    var calls: [Call] { self.state.withLock { $0.calls } }
    func answer(_ rule: @escaping Rule) { self.state.withLock { $0.rule = rule } }

    /// Runs a server with this cloud beside it. `configure` has the last word.
    static func run(
        data: String? = nil, configure: @escaping @Sendable (inout ServerConfig) -> Void = { _ in },
        _ body: @escaping @Sendable (RongCloudStandIn, PortlessServer) async throws -> Void
    ) async throws {
        let cloud = RongCloudStandIn()
        try await CannedServer.run({ cloud.answer($0) }) { _, url in
            let set: (inout ServerConfig) -> Void = { config in
                config.apps.rongcloud.host = "\(url)/"
                config.apps.rongcloud.appKey = Self.appKey
                config.apps.rongcloud.secret = Self.secret
                config.outbound.allowPrivate = CIDR.loopback
                config.log.level = .trace
                configure(&config)
            }
            let checked: @Sendable (PortlessServer) async throws -> Void = { server in
                try await body(cloud, server)
                if let line = server.lines.all.first(where: { $0.contains(Self.secret) }) {
                    throw TimedOut(description: "the secret is in a line: \(line)")
                }
            }
            if let data { try await PortlessServer.run(data: data, set, checked) } else { try await PortlessServer.run(set, checked) }
        }
    }

    static func signature(_ nonce: String, _ timestamp: String) -> String {
        Insecure.SHA1.hash(data: Data("\(Self.secret)\(nonce)\(timestamp)".utf8)).map { String(format: "%02x", $0) }.joined()
    }

    private static let fields: [String: [String]] = [
        "/user/getToken": ["userId", "name", "portraitUri"],
        "/group/create": ["userId", "groupId", "groupName"], "/group/join": ["userId", "groupId", "groupName"],
        "/group/quit": ["userId", "groupId"], "/group/dismiss": ["userId", "groupId"],
        RongCloudStandIn.publish: [
            "fromUserId", "toUserId", "toGroupId", "objectName", "content", "pushContent", "pushData", "isPersisted", "isCounted",
            "isIncludeSender", "isMentioned",
        ],
    ]

    private func answer(_ request: CannedServer.Request) -> CannedServer.Answer {
        let fields = request.body.split(separator: "&").map { field in
            let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            return (name: parts[0], value: (parts.count > 1 ? parts[1].removingPercentEncoding : nil) ?? "")
        }
        let path = request.uri.hasSuffix(".json") ? String(request.uri.dropLast(5)) : request.uri
        let (nonce, timestamp) = (request.headers["rc-nonce"] ?? "", request.headers["rc-timestamp"] ?? "")
        var problems: [String] = []
        if request.method != "POST" || !request.uri.hasSuffix(".json") { problems.append("\(request.method) \(request.uri)") }
        if request.headers["content-type"] != "application/x-www-form-urlencoded" { problems.append("content type") }
        if request.headers["rc-app-key"] != Self.appKey { problems.append("app key") }
        if request.headers["rc-signature"] != Self.signature(nonce, timestamp) { problems.append("signature") }
        if abs((Double(timestamp) ?? 0) - Date().timeIntervalSince1970) > 300 { problems.append("time \(timestamp)") }
        let expected = (Self.fields[path] ?? []).filter { $0 != "toUserId" || fields.contains { $0.name == "toUserId" } }
        if fields.map(\.name) != expected { problems.append("fields \(fields.map(\.name))") }
        let (call, rule) = self.state.withLock { state in
            if nonce.isEmpty || !state.nonces.insert(nonce).inserted { problems.append("nonce") }
            let call = Call(path: path, fields: fields, problem: problems.joined(separator: ", "))
            state.calls.append(call)
            return (call, state.rule)
        }
        guard call.problem.isEmpty else { return .json(401, #"{"code":1004,"errorMessage":"\#(call.problem)"}"#) }
        if let answer = rule(call) { return answer }
        let token = path == "/user/getToken" ? #","userId":"\#(call["userId"])","token":"rc-\#(call["userId"])""# : ""
        return .json(200, #"{"code":200\#(token)}"#)
    }

    /// The calls so far, one a line: ids of members as their names, which are those of `getToken`; tickets as T; no times.
    var transcript: [String] {
        let calls = self.calls
        let names = Dictionary(calls.filter { $0.path == "/user/getToken" }.map { ($0["userId"], $0["name"]) }) { $1 }
        return calls.map { call in
            var line: String
            switch call.path {
            case "/user/getToken": line = "getToken \(call["userId"])"
            case Self.publish:
                let to = call["toUserId"].isEmpty ? "all" : call["toUserId"]
                let flags = ["pushContent", "pushData", "isPersisted", "isCounted", "isMentioned"].map { call[$0] }.joined()
                line =
                    "\(call["fromUserId"]) > \(to) of \(call["toGroupId"]) +\(call["isIncludeSender"])\(flags == "000" ? "" : "?\(flags)")"
                line += " \(call["objectName"]) \(Self.text(call.content))"
            default: line = "\(call.path.dropFirst(7)) \(call["userId"]) \(call["groupId"])"
            }
            for (id, name) in names { line = line.replacing(id, with: name) }
            return call.problem.isEmpty ? line : "BAD \(call.problem): \(line)"
        }
    }

    private static func text(_ content: JSON) -> String {
        func text(_ value: Any?) -> String {
            if let list = value as? [Any] { return "[\(list.map { text($0) }.joined(separator: " "))]" }
            guard let object = value as? [String: Any] else { return (value as? NSNumber).map { "\($0)" } ?? "\(value ?? "")" }
            return object.keys.filter { $0 != "timestamp" && !$0.hasSuffix("Name") }.sorted()
                .map { "\($0)=\($0 == "ticket" ? "T" : text(object[$0]))" }.joined(separator: " ")
        }
        return text(content.value)
    }

    /// Waits until the calls are these; the test fails with what they are otherwise.
    func becomes(_ lines: [String]) async throws {
        do {
            try await eventually("the calls", within: 60) { self.transcript.count >= lines.count }
        } catch {
            throw TimedOut(description: "too few calls: \(self.transcript)")
        }
        let now = self.transcript
        guard now == lines else {
            let first = zip(now, lines).first { $0 != $1 }
            throw TimedOut(description: "calls differ: \(String(describing: first)); now \(now.joined(separator: "\n"))")
        }
    }

    // MARK: - Its webhook

    /// Sends a webhook: the status and text of its answer.
    static func webhook(
        _ server: PortlessServer, _ body: String, nonce: String = "n1", secondsAgo: Int = 0, signature: String? = nil
    ) async throws -> HTTPAnswer {
        let timestamp = "\(Int(Date().timeIntervalSince1970 * 1_000) - secondsAgo * 1_000)"
        let signed = signature ?? Self.signature(nonce, timestamp)
        let query = "appKey=\(Self.appKey)&nonce=\(nonce)&timestamp=\(timestamp)&signature=\(signed)"
        return try await HTTPAnswer.call(
            "POST", "\(server.http)/classroom/api/v1/room/members/online-status?\(query)", body: Data(body.utf8))
    }
}

/// A native app's member of a class.
struct ClassMember: Sendable {
    let server: PortlessServer
    let room: String
    let id: String
    let imToken: String
    let authorization: String

    static func call(
        _ server: PortlessServer, _ path: String, _ fields: [String: Any], authorization: String = ""
    ) async throws -> JSON {
        let answer = try await HTTPAnswer.call(
            "POST", "\(server.http)/classroom/api/v1\(path)", body: try JSONSerialization.data(withJSONObject: fields),
            headers: authorization.isEmpty ? [:] : ["Authorization": authorization])
        guard answer.status == 200 else { throw TimedOut(description: "\(path): \(answer.status) \(answer.text)") }
        return try answer.json()
    }

    static func join(
        _ server: PortlessServer, _ name: String, room: String = "math", audience: Bool = false, authorization: String = ""
    ) async throws -> ClassMember {
        let answer = try await self.call(
            server, "/room/join", ["roomId": room, "userName": name, "audience": audience], authorization: authorization)
        let result = answer["data"]["result"]
        guard answer["errCode"].int == 0, let id = result["userInfo"]["userId"].string else {
            throw TimedOut(description: "\(name) cannot join: \(answer["errCode"].int ?? -1) \(answer["errDetail"].string ?? "")")
        }
        return ClassMember(
            server: server, room: room, id: id, imToken: result["imToken"].string ?? "",
            authorization: result["authorization"].string ?? "")
    }

    /// The code of a call's answer.
    @discardableResult
    func call(_ path: String, _ fields: [String: any Sendable] = [:]) async throws -> Int {
        let all = fields.merging(["roomId": self.room]) { $1 }
        return try await Self.call(self.server, path, all, authorization: self.authorization)["errCode"].int ?? -1
    }
}
