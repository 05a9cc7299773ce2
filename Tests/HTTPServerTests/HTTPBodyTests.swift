import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

/// Requests whose bodies do not come to their end as HTTP requires.
@Suite struct HTTPBodyTests {
    /// Routes that read a body: path, and headers besides.
    private static let doors = [
        ("/api/v1/rooms", "Content-Type: application/json\r\n"), ("/console/login", "Content-Type: application/json\r\n"),
        ("/push/live/cam1/heartbeat", ""), ("/channel/ticket", ""),
    ]
    private static let broken = [
        "zz\r\n{}\r\n0\r\n\r\n", "-1\r\n{}\r\n0\r\n\r\n", "2\r\n{}xx0\r\n\r\n", "2\r\n{}0\r\n\r\n", "fffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    ]

    private static func head(_ path: String, _ server: PortlessServer, _ headers: String = "") -> String {
        "POST \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer \(server.token)\r\n\(headers)"
    }

    /// A client's mistake: a 400 that says so, and no line at level error, since anybody can send it as often as he likes.
    @Test(arguments: Self.doors) func brokenChunksAreTheClientsMistake(_ path: String, _ headers: String) async throws {
        try await PortlessServer.run { server in
            for body in Self.broken {
                let socket = try await SocketClient.open(server.addresses.http.port)
                try await socket.send(Self.head(path, server, headers) + "Transfer-Encoding: chunked\r\n\r\n" + body)
                let answer = try await socket.answer()
                #expect(answer.head.hasPrefix("HTTP/1.1 400 ") && answer.head.lowercased().contains("connection: close"), "\(answer.head)")
                let json = JSON(try JSONSerialization.jsonObject(with: Data(answer.body.utf8)))
                #expect(json["error"]["type"].string == "invalid", "\(answer.body)")
                #expect(json["error"]["rule"].string?.contains("chunks") == true, "\(answer.body)")
                try await eventually("the end") { socket.isClosed }
            }
            #expect(!server.lines.all.contains { $0.hasPrefix("error") }, "\(server.lines.all)")
        }
    }

    /// Apps' dialects answer in their own forms.
    @Test(arguments: [
        ("/?Action=DescribeLiveStreamOnlineList", #""Code":"InvalidParameter""#), ("/dollsCatcher/tourist", #""code":"#),
        ("/classroom/api/v1/room/join", #""errCode":"#),
    ])
    func dialectsSayItInTheirForms(_ path: String, _ code: String) async throws {
        try await PortlessServer.run { server in
            let socket = try await SocketClient.open(server.addresses.http.port)
            try await socket.send(
                "POST \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\nX-TC-Action: DescribeLiveStreamOnlineList\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\nzz\r\n")
            let answer = try await socket.answer()
            #expect(answer.body.contains(code) && answer.body.contains("body is not framed"), "\(answer)")
            #expect(!server.lines.all.contains { $0.hasPrefix("error") }, "\(server.lines.all)")
        }
    }

    /// Refused for its time, a request does not take effect with the part of its body that came.
    @Test func aPartOfABodyIsNotTheWhole() async throws {
        try await PortlessServer.run({ $0.limits.httpBodyMs = 300 }) { server in
            let socket = try await SocketClient.open(server.addresses.http.port)
            let room = #"{"roomId":"cut"}"#
            try await socket.send(
                Self.head("/api/v1/rooms", server, "Content-Type: application/json\r\n")
                    + "Transfer-Encoding: chunked\r\n\r\n10\r\n\(room)\r\n")
            #expect(try await socket.answer().head.hasPrefix("HTTP/1.1 408 "))
            try await eventually("the call's end in the audit trail") {
                let list = try await HTTPAnswer.get("\(server.http)/api/v1/audit", token: server.token).json()["data"]["list"].list
                guard let line = list.first(where: { $0["operation"].string == "createRoom" }) else { return false }
                #expect(line["result"].string == "invalid")
                return true
            }
            #expect(try await HTTPAnswer.get("\(server.http)/api/v1/rooms/cut", token: server.token).status == 404)
        }
    }
}
