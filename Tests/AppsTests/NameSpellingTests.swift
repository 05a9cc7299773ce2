import Testing

@testable import Apps
@testable import Rooms
@testable import Support

/// Names in apps' frames and calls have one spelling: Unicode Normalization Form C.
@Suite struct NameSpellingTests {
    private static let rule = "is not in Unicode Normalization Form C: write \"é\" as U+00E9, not as U+0065 U+0301"

    @Test func `a mesh room`() throws {
        #expect(try MeshFrame.read(#"{"eventName":"__join","data":{"room":"caf\u00e9"}}"#) == .join(room: "caf\u{E9}"))
        let problem = #expect(throws: MeshFrame.Problem.self) {
            try MeshFrame.read(#"{"eventName":"__join","data":{"room":"cafe\u0301"}}"#)
        }
        #expect(problem?.error.field == "room" && problem?.error.rule == "the text \(Self.rule)")
        #expect(throws: MeshFrame.Problem.self) {
            try MeshFrame.read(#"{"eventName":"__offer","data":{"socketId":"\u212A","sdp":"x"}}"#)
        }
    }

    @Test func `words of a channel`() throws {
        for frame in [
            #""type":"send","to":"cafe\u0301","content":1"#, #""type":"send","object":"cafe\u0301","content":1"#,
            #""type":"queue.poll","key":"cafe\u0301""#, #""type":"ticket.open","to":"a","kind":"cafe\u0301""#,
        ] {
            let problem = #expect(throws: ChannelFrame.Problem.self) { try ChannelFrame.read("{\(frame)}") }
            #expect(problem?.error.rule == "the text \(Self.rule)", "\(frame)")
            _ = try ChannelFrame.read("{\(frame.replacing("e\\u0301", with: "\u{E9}"))}")
        }
        // What is said has no names.
        _ = try ChannelFrame.read(#"{"type":"send","content":"cafe\u0301"}"#)
    }

    @Test func `people's names`() {
        #expect(GatheringLimits.isName("Jos\u{E9}") && !GatheringLimits.isName("Jose\u{301}"))
        #expect(GatheringLimits.problem(ofName: "Jose\u{301}") == "the name \(Self.rule)")
        let refusal = #expect(throws: GatheringRefusal.self) {
            try ClassroomCall.read(
                method: "POST", path: "/room/join", query: [], body: #"{"roomId":"c1","userName":"Jose\u0301"}"#)
        }
        #expect(refusal?.description.contains("userName: the name \(Self.rule)") == true)
        let error = #expect(throws: DollsCatcherError.self) {
            try DollsCatcherCall.read(
                path: "/dollsCatcher/host/create",
                parameters: [("accid", "a"), ("nickname", "b"), ("name", "cafe\u{301}")])
        }
        #expect(error.map { "\($0)".contains("Form C") } == true)
    }

    /// The member is another, though Swift's strings are equal.
    @Test func `members are found by their ids' bytes`() throws {
        var room = Gathering(limits: GatheringLimits(members: 8, offlineMs: 0))
        _ = try room.apply(.connect(id: "K", name: "K", role: "", ConnectionID(1)), nowMs: 1)
        #expect(room.member("K") != nil && room.member("\u{212A}") == nil)
    }

    @Test func `the cloud's streams`() throws {
        func code(_ action: String, _ json: String) throws -> TencentError? {
            guard case .object(let members) = try JSONParser.parse(json.utf8) else { return nil }
            do throws(TencentError) {
                _ = try TencentAction(action, TencentFields(members), domains: [])
                return nil
            } catch {
                return error
            }
        }
        for (app, name) in [("live", #"cafe\u0301"#), (#"cafe\u0301"#, "cam")] {
            for action in ["DescribeLiveStreamState", "DropLiveStream", "ForbidLiveStream", "ResumeLiveStream"] {
                let error = try code(action, #"{"AppName":"\#(app)","DomainName":"d","StreamName":"\#(name)"}"#)
                #expect(error?.code == .invalidStreamName && error?.message.contains("the name \(Self.rule)") == true, "\(action)")
            }
            let error = try code("DescribeLiveStreamOnlineList", #"{"AppName":"\#(app)","StreamName":"\#(name)"}"#)
            #expect(error?.code == .invalidValue && error?.message.contains(Self.rule) == true)
        }
        #expect(try code("DropLiveStream", #"{"AppName":"live","DomainName":"d","StreamName":"caf\u00e9"}"#) == nil)
    }
}
