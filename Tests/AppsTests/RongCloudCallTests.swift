import Testing

@testable import Apps
@testable import Support

/// Calls of RongCloud's API, with signatures computed by Python's hashlib, and its callback.
@Suite struct RongCloudCallTests {
    @Test func headers() {
        let headers = RongCloudCall.headers(appKey: "key1", secret: "topsecret", nonce: "14314", atSeconds: 1_795_238_581)
        #expect(headers.map(\.name) == ["RC-App-Key", "RC-Nonce", "RC-Timestamp", "RC-Signature"])
        #expect(headers.map(\.value) == ["key1", "14314", "1795238581", "89adeda2f2f104abd4cc5098dc3172c88946ceab"])
    }

    @Test func calls() {
        let table: [(RongCloudCall, String, String, ClassroomCode)] = [
            (.token(userID: "u1", name: "A&B"), "/user/getToken.json", "userId=u1&name=A%26B&portraitUri=", .imToken),
            (
                .createGroup(userIDs: ["u1"], groupID: "m", name: "m"), "/group/create.json", "userId=u1&groupId=m&groupName=m", .createRoom
            ),
            (
                .joinGroup(userIDs: ["u1", "u2"], groupID: "m", name: "数 学"), "/group/join.json",
                "userId=u1&userId=u2&groupId=m&groupName=%E6%95%B0%20%E5%AD%A6", .createRoom
            ),
            (.quitGroup(userIDs: ["u1"], groupID: "m"), "/group/quit.json", "userId=u1&groupId=m", .leaveRoom),
            (.dismissGroup(userID: "u1", groupID: "m"), "/group/dismiss.json", "userId=u1&groupId=m", .leaveRoom),
            (
                .publish(from: "u1", groupID: "m", object: "SC:RSMsg", content: ["reqUserName": "张 三&=+"], includesSender: true),
                "/message/group/publish.json",
                "fromUserId=u1&toGroupId=m&objectName=SC%3ARSMsg&content=%7B%22reqUserName%22%3A%22%E5%BC%A0%20%E4%B8%89%26%3D%2B%22%7D"
                    + "&pushContent=&pushData=&isPersisted=0&isCounted=0&isIncludeSender=1&isMentioned=0", .message
            ),
            (
                .publish(from: "u1", to: "u2", groupID: "m", object: "O", content: 1, includesSender: false), "/message/group/publish.json",
                "fromUserId=u1&toUserId=u2&toGroupId=m&objectName=O&content=1&pushContent=&pushData=&isPersisted=0&isCounted=0"
                    + "&isIncludeSender=0&isMentioned=0", .message
            ),
        ]
        for (call, path, body, failure) in table {
            #expect(call.path == path && call.body == body && call.failure == failure, "\(call)")
        }
    }

    @Test func callAnswers() throws {
        let call = RongCloudCall.token(userID: "u1", name: "A")
        #expect(try call.read(#"{"code":200,"userId":"u1","token":"t0"}"#) == "t0")
        #expect(try call.read(#"{"code":200}"#) == nil)
        for answer in ["", "x", "{}", #"{"code":"200"}"#, #"{"code":1002,"errorMessage":"no"}"#, "[200]"] {
            #expect(throws: GatheringRefusal.self) { try call.read(answer) }
        }
        do throws(GatheringRefusal) {
            _ = try RongCloudCall.quitGroup(userIDs: ["u1"], groupID: "m").read("{}")
        } catch {
            #expect(ClassroomCode(error) == .leaveRoom)
        }
    }

    // MARK: - Webhook

    private static let body = #"[{"userId":"u1","status":"0","os":"iOS","time":1},{"userId":"u2","status":"1"},{"userId":"u3","status":2}]"#
    private static let nowMs: Int64 = 1_795_238_581_000

    private func callback(
        nonce: String = "n0nce", timestamp: String = "1795238581000", signature: String = "604d310aff1a4e0ccde5067649a9948c28d11a97",
        body: String = Self.body
    ) throws(GatheringRefusal) -> RongCloudCallback {
        try RongCloudCallback(query: [("nonce", nonce), ("timestamp", timestamp), ("signature", signature)], body: body)
    }

    @Test func onlineStatus() throws {
        let callback = try self.callback()
        #expect(callback.changes.map(\.userID) == ["u1", "u2", "u3"] && callback.changes.map(\.isOnline) == [true, false, false])
        #expect(try self.callback(body: "[]").changes.isEmpty)
        let call = try ClassroomCall.read(method: "POST", path: "/room/members/online-status", query: [], body: "[]")
        guard case .onlineStatus(let unsigned)? = call?.action else { return #expect(Bool(false), "\(String(describing: call))") }
        #expect(!unsigned.isSigned(secret: "topsecret", nowMs: Self.nowMs))
        let wrong = [
            ("", "4"), ("x", "4"), ("{}", "1"), ("[1]", "1"), (#"[{"userId":"u1"}]"#, "1"), (#"[{"status":"0"}]"#, "1"),
            (#"[{"userId":"u1","status":"3"}]"#, "1"), (#"[{"userId":"","status":"0"}]"#, "1"), (#"[{"userId":"u1","status":true}]"#, "1"),
            ("[" + Array(repeating: #"{"userId":"u","status":"0"}"#, count: 1_001).joined(separator: ",") + "]", "1"),
        ]
        for (body, code) in wrong {
            #expect(throws: GatheringRefusal.self) { try self.callback(body: body) }
            do throws(GatheringRefusal) {
                _ = try self.callback(body: body)
            } catch {
                #expect(error.code == code, "\(body.prefix(80))")
            }
        }
    }

    @Test func signatures() throws {
        func isSigned(_ callback: RongCloudCallback, secret: String = "topsecret", nowMs: Int64 = Self.nowMs) -> Bool {
            callback.isSigned(secret: secret, nowMs: nowMs)
        }
        let callback = try self.callback()
        #expect(isSigned(callback))
        #expect(isSigned(try self.callback(signature: "604D310AFF1A4E0CCDE5067649A9948C28D11A97")))
        #expect(isSigned(try self.callback(timestamp: "1795238581", signature: "cae49e89d8d8b438142145bffe2a3fc432684aaa")), "seconds")
        #expect(!isSigned(callback, secret: "topsecreT"))
        #expect(!isSigned(try self.callback(nonce: "n1nce")))
        #expect(!isSigned(try self.callback(timestamp: "1795238581001")))
        for signature in ["", "604d", "604d310aff1a4e0ccde5067649a9948c28d11a98"] {
            #expect(!isSigned(try self.callback(signature: signature)))
        }
        // Old ones could be sent again.
        #expect(isSigned(callback, nowMs: Self.nowMs + 300_000) && isSigned(callback, nowMs: Self.nowMs - 300_000))
        #expect(!isSigned(callback, nowMs: Self.nowMs + 300_001) && !isSigned(callback, nowMs: Self.nowMs - 300_001))
        let timeless = try self.callback(timestamp: "abc", signature: "19194136b55e976214d9fbf7563bdbbda90ebbcb")
        #expect(!isSigned(timeless), "signed, but no time")
        #expect(!isSigned(try RongCloudCallback(query: [("signature", "12201fe5e202883bd45fc97e87366ea05183e0e4")], body: "[]")))
    }
}
