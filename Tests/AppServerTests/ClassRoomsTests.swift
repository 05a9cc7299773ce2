import AppServer
import Foundation
import PortlessTestSupport
import ServerConfiguration
import ServerTestSupport
import Support
import TestSupport
import Testing

@testable import EarshotServer

/// The rooms of classes and machines: theirs alone, and none without a class or a machine.
@Suite struct ClassRoomsTests {
    /// OBS may push before the first one joins: the class gets a room of its own all the same, and the push comes again.
    @Test func aPushBeforeTheClass() async throws {
        try await PortlessServer.run { server in
            let early = try await TagClient.publish(to: server, "live/class-math")
            try await server.wait("rooms/class-math") { $0["isAdHoc"].bool == true }
            let ann = try await ClassMember.join(server, "Ann")
            let room = try await server.api("rooms/class-math")
            #expect(room["isAdHoc"].bool == false && room["isPublic"].bool == false && room["streams"].list.count == 3, "\(room)")
            await early.close()
            let again = try await TagClient.publish(to: server, "live/class-math")
            await again.close()
            // The end of a push is not the class's.
            #expect(try await ann.call("/room/device/sync", ["cameraOn": true]) == 0)
            #expect(try await ann.call("/room/leave") == 0)
            try await eventually("the class's end") { server.server.parts.apps.gatherings.count == 0 }
        }
    }

    @Test func noneTooMany() async throws {
        try await PortlessServer.run({ $0.apps.gatherings = 1 }) { server in
            _ = try await ClassMember.join(server, "Ann")
            for number in 0..<3 {
                let answer = try await ClassMember.call(server, "/room/join", ["roomId": "more\(number)", "userName": "Bob"])
                #expect(answer["errCode"].int == 11)
                let machine = try await HTTPAnswer.call(
                    "POST", "\(server.http)/dollsCatcher/host/create", body: Data("accid=c\(number)&nickname=c&name=C".utf8))
                #expect(try machine.json()["code"].int == 800)
            }
            #expect(try await server.api("rooms")["total"].int == 1)
        }
    }

    /// A name that is not the server's: said so, and never part of an address that others open.
    @Test func foreignNames() async throws {
        try await PortlessServer.run { server in
            let ann = try await ClassMember.join(server, "Ann")
            func call(_ path: String, _ body: String, _ more: String = "") async throws -> String {
                let socket = try await SocketClient.open(server.addresses.http.port)
                try await socket.send(
                    "POST \(path) HTTP/1.1\r\nHost: class.example.net\r\n\(more)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
                defer { Task { await socket.close() } }
                return try await socket.answer().1
            }
            let base = "/classroom/api/v1/room"
            let joined = try await call("\(base)/join", #"{"roomId":"math","userName":"Bob"}"#)
            #expect(joined.contains(#""errCode":2"#) && joined.contains("http.hosts") && joined.contains("class.example.net"), "\(joined)")
            let made = try await call("/dollsCatcher/host/create", "accid=c&nickname=c&name=C")
            #expect(made.contains(#""code":403"#) && made.contains("http.hosts"), "\(made)")
            // The teacher's token is good; the name in the request is still no part of the board's address.
            let board = try await call("\(base)/whiteboard/create", #"{"roomId":"math"}"#, "Authorization: \(ann.authorization)\r\n")
            #expect(board.contains(#""errCode":0"#) && !board.contains("class.example.net"), "\(board)")
            #expect(board.replacing("\\/", with: "/").contains("http://127.0.0.1:\(server.addresses.http.port)/board/"), "\(board)")
            #expect(try await ann.call("/room/whiteboard/create") == 0)
        }
    }

    /// What looks like a credential relaxes no rule: a page that may not join without one may not with junk either.
    @Test(arguments: ["", "x", "Bearer x", "Bearer a.b.c", "Basic YTpi"])
    func junkOpensNoClass(_ junk: String) async throws {
        try await PortlessServer.run { server in
            let own = "http://127.0.0.1:\(server.addresses.http.port)"
            // Headers of the page, and whether it may join.
            let pages: [([String: String], Bool)] = [
                ([:], true), (["Origin": own], true), (["Origin": "https://evil.example"], false), (["Origin": "null"], false),
                (["Sec-Fetch-Site": "cross-site"], false), (["Host": "evil.example"], false),
                (["Host": "evil.example", "Origin": "http://evil.example"], false),
            ]
            for (page, isLetIn) in pages {
                var headers = page
                if !junk.isEmpty { headers["Authorization"] = junk }
                let answer = try await HTTPAnswer.call(
                    "POST", "\(server.http)/classroom/api/v1/room/join", body: Data(#"{"roomId":"math","userName":"Bob"}"#.utf8),
                    headers: headers)
                let code = try answer.json()["errCode"].int
                #expect(code == (isLetIn ? 0 : 2), "\(page): \(answer.text)")
                // Where pages of all origins may come with a credential, all may read why they may not without.
                #expect(answer.headers["access-control-allow-origin"] == page["Origin"], "\(page)")
            }
        }
    }

    /// Several origins; the pages of others may not even read that they are refused.
    @Test func onlyTheOriginsThatAreNamed() async throws {
        try await PortlessServer.run({ $0.http.allowOrigin = ["https://one.example", "https://two.example"] }) { server in
            for (origin, code) in [("https://one.example", 0), ("https://two.example", 0), ("https://three.example", 2)] {
                let answer = try await HTTPAnswer.call(
                    "POST", "\(server.http)/classroom/api/v1/room/join", body: Data(#"{"roomId":"math","userName":"Bob"}"#.utf8),
                    headers: ["Origin": origin])
                #expect(try answer.json()["errCode"].int == code, "\(origin): \(answer.text)")
                #expect(answer.headers["access-control-allow-origin"] == (code == 0 ? origin : nil))
                let ticket = try await HTTPAnswer.call(
                    "POST", "\(server.http)/channel/ticket", body: Data(#"{"token":"x"}"#.utf8), headers: ["Origin": origin])
                #expect(ticket.status == 401 && ticket.headers["access-control-allow-origin"] == (code == 0 ? origin : nil))
            }
        }
    }

    /// A good credential admits the pages that `http.allowOrigin` names, here all; a page with one that is no longer good may read so.
    @Test func aGoodCredentialCounts() async throws {
        try await PortlessServer.run { server in
            let ann = try await ClassMember.join(server, "Ann")
            for (token, code) in [(ann.authorization, 0), ("\(ann.authorization)x", 2)] {
                let answer = try await HTTPAnswer.call(
                    "GET", "\(server.http)/classroom/api/v1/room/members?roomId=math",
                    headers: ["Authorization": token, "Origin": "https://app.example"])
                #expect(try answer.json()["errCode"].int == code, "\(answer.text)")
                #expect(answer.headers["access-control-allow-origin"] == "https://app.example")
            }
        }
    }
}
