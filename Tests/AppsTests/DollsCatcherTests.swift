@testable import Apps
@testable import Support
import Testing

/// The calls of `/dollsCatcher/`, their refusals' codes, and the answers' fields.
@Suite struct DollsCatcherTests {
    private func read(_ call: String, _ parameters: KeyValuePairs<String, String> = [:]) throws(DollsCatcherError) -> DollsCatcherCall? {
        try DollsCatcherCall.read(path: "/dollsCatcher/\(call)", parameters: parameters.map { ($0.key, $0.value) })
    }

    @Test func calls() throws {
        #expect(try self.read("tourist") == .tourist(sid: nil) && self.read("tourist", ["sid": ""]) == .tourist(sid: nil))
        #expect(try self.read("tourist", ["sid": "player107"]) == .tourist(sid: "player107"))
        #expect(try self.read("tourist", ["sid": String(repeating: "x", count: 65)]) == .tourist(sid: nil))
        #expect(try self.read("room/list", ["sid": "p"]) == .roomList(sid: "p", limit: 10, offset: 0))
        #expect(try self.read("room/list", ["sid": "p", "limit": "100", "offset": "7"]) == .roomList(sid: "p", limit: 100, offset: 7))
        #expect(
            try self.read("host/create", ["accid": "Wa.W@x-1_", "nickname": "娃娃机a1", "name": "初代 娃娃机", "password": ""])
                == .hostCreate(accid: "wa.w@x-1_", nickname: "娃娃机a1", password: nil, name: "初代 娃娃机", mode: .server))
        #expect(
            try self.read("host/create", ["accid": "a", "nickname": "b", "name": "c", "password": "d"])
                == .hostCreate(accid: "a", nickname: "b", password: "d", name: "c", mode: .server))
        #expect(
            try self.read("host/create", ["accid": "a", "nickname": "b", "name": "c", "mode": "device"])
                == .hostCreate(accid: "a", nickname: "b", password: nil, name: "c", mode: .device))
        #expect(
            try self.read("host/manage", ["roomId": "9", "roomStatus": "true"]) == .hostManage(roomID: 9, isOpen: true, isPublic: nil))
        #expect(
            try self.read("host/manage", ["roomId": "9", "roomStatus": "", "bePublic": "0"])
                == .hostManage(roomID: 9, isOpen: nil, isPublic: false))
        #expect(try self.read("host/query", ["roomId": "9", "roomId": "8"]) == .hostQuery(roomID: 9), "the first counts")
        #expect(try self.read("room/mock") == nil && self.read("") == nil)
        #expect(try DollsCatcherCall.read(path: "/tourist", parameters: []) == nil)
    }

    @Test func refusals() {
        let long = String(repeating: "x", count: 65)
        let wrong: [(String, KeyValuePairs<String, String>, Int)] = [
            ("room/list", [:], 400), ("room/list", ["sid": " "], 400), ("room/list", ["sid": long], 401),
            ("room/list", ["sid": "p", "limit": "0"], 400), ("room/list", ["sid": "p", "limit": "101"], 400),
            ("room/list", ["sid": "p", "limit": "ten"], 400), ("room/list", ["sid": "p", "offset": "-1"], 400),
            ("room/list", ["sid": "p", "offset": "99999999999999999999"], 400), ("room/list", ["sid": "p", "offset": "1000000001"], 400),
            ("host/create", ["nickname": "b", "name": "c"], 400), ("host/create", ["accid": "a", "name": "c"], 400),
            ("host/create", ["accid": "a", "nickname": "b"], 400), ("host/create", ["accid": "a", "nickname": "b", "name": "  "], 400),
            ("host/create", ["accid": "a", "nickname": "b", "name": long], 400),
            ("host/create", ["accid": "a", "nickname": "b", "name": "c\n"], 400),
            ("host/create", ["accid": "a", "nickname": "b", "name": "c", "password": long], 400),
            ("host/create", ["accid": "a", "nickname": "b", "name": "c", "mode": "robot"], 400),
            ("host/create", ["accid": "", "nickname": "b", "name": "c"], 901),
            ("host/create", ["accid": "a b", "nickname": "b", "name": "c"], 901),
            ("host/create", ["accid": "娃", "nickname": "b", "name": "c"], 901),
            ("host/create", ["accid": "abcdefghijklmnopqrstu", "nickname": "b", "name": "c"], 901),
            ("host/create", ["accid": "a", "nickname": "", "name": "c"], 902),
            ("host/create", ["accid": "a", "nickname": "b!", "name": "c"], 902),
            ("host/create", ["accid": "a", "nickname": "娃娃机娃娃机娃娃机娃娃", "name": "c"], 902),
            ("host/create", ["accid": "a", "nickname": "e\u{301}", "name": "c"], 902),
            ("host/manage", ["roomId": "9"], 400), ("host/manage", ["bePublic": "true"], 400),
            ("host/manage", ["roomId": "9", "bePublic": "maybe"], 400), ("host/manage", ["roomId": "x", "bePublic": "true"], 400),
            ("host/query", [:], 400), ("host/query", ["roomId": "0"], 400), ("host/query", ["roomId": "1.5"], 400),
        ]
        for (call, parameters, code) in wrong {
            do throws(DollsCatcherError) {
                let read = try self.read(call, parameters)
                Issue.record("\(call) \(parameters) is read as \(String(describing: read))")
            } catch {
                #expect(error.code == code && !error.message.isEmpty, "\(call) \(parameters): \(error)")
            }
        }
        let others: [DollsCatcherError] = [.unknownAccount, .tooManyRequests, .noSuchRoom, .accidTaken, .noMoreTourists("x")]
        #expect(others.map(\.code) == [401, 407, 804, 906, 1_101])
    }

    @Test func accounts() {
        let account = DollsCatcherAccount(sequence: 12, random: 4_200_703)
        #expect(account.accid == "player1203" && account.nickname == "玩家042007")
        #expect(DollsCatcherAccount(accid: "player1203", nickname: "玩家042007") == account)
        #expect(DollsCatcherAccount.isAccid(account.accid) && DollsCatcherAccount.isNickname(account.nickname))
        let last = DollsCatcherAccount(sequence: .max, random: .max)
        #expect(last.accid == "player429496729595" && last.nickname == "玩家949672")
        #expect(DollsCatcherAccount.isAccid(last.accid))
    }

    @Test func answers() {
        #expect(DollsCatcherAnswer.success().text == #"{"code":200}"#)
        #expect(DollsCatcherAnswer.failure(.noSuchRoom).text == #"{"code":804,"msg":"There is no such room."}"#)
        #expect(DollsCatcherAnswer.created(roomID: 19).text == #"{"code":200,"data":19}"#)
        #expect(
            DollsCatcherAnswer.tourist(.init(sequence: 1, random: 0), imToken: "t").text
                == #"{"code":200,"data":{"accid":"player100","nickname":"玩家000000","imToken":"t"}}"#)
        let room = DollsCatcherAnswer.Room(id: 19, name: "n", creator: "c", isOpen: true)
        let entry = DollsCatcherAnswer.entry(
            room, first: .init(rtmp: "r1", http: "f1", hls: "h1"), second: .init(rtmp: "r2", http: "f2", hls: "h2"), liveStatus: 3,
            online: 8, queued: 6)
        #expect(
            DollsCatcherAnswer.list(total: 30, [entry]).text
                == #"{"code":200,"data":{"total":30,"list":[{"roomId":19,"name":"n","creator":"c","rtmpPullUrl1":"r1","rtmpPullUrl2":"r2","#
                + #""httpPullUrl1":"f1","httpPullUrl2":"f2","hlsPullUrl1":"h1","hlsPullUrl2":"h2","roomStatus":true,"liveStatus":3,"#
                + #""onlineUserCount":8,"queueCount":6}]}}"#)
        #expect(
            DollsCatcherAnswer.host(room, token: "t", pushURLs: "p1", "p2").text
                == #"{"code":200,"data":{"roomId":19,"name":"n","creator":"c","creatorToken":"t","pushUrl1":"p1","pushUrl2":"p2","#
                + #""roomStatus":true}}"#)
    }
}
