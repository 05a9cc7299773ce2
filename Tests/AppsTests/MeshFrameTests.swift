import Testing

@testable import Apps
@testable import Support

/// Frames of the mesh, in and out.
@Suite struct MeshFrameTests {
    private func refusal(_ text: String) -> String? {
        do throws(MeshFrame.Problem) {
            _ = try MeshFrame.read(text)
            return nil
        } catch {
            return "\(error.event)|\(error.error.field)"
        }
    }

    @Test func whatComesIn() throws {
        #expect(try MeshFrame.read(#"{"eventName":"__join","data":{"room":"lobby"}}"#) == .join(room: "lobby"))
        for text in [
            #"{"eventName":"__join"}"#, #"{"eventName":"__join","data":{"room":""}}"#, #"{"eventName":"__join","data":{"room":null}}"#,
        ] {
            #expect(try MeshFrame.read(text) == .join(room: nil), "\(text)")
        }
        for (ice, asks) in [("true", true), ("false", false), ("null", false)] {
            #expect(try MeshFrame.read(#"{"eventName":"__join","data":{"ice":\#(ice)}}"#) == .join(room: nil, asksICE: asks))
        }
        #expect(try MeshFrame.read(#"{"data":{}}"#) == nil && MeshFrame.read(#"{"eventName":null}"#) == nil)
        guard
            case .direct(to: "id", name: "offer", let data) = try MeshFrame.read(
                #"{"eventName":"__offer","data":{"socketId":"id","sdp":{"x":1},"more":2}}"#)
        else {
            Issue.record("not an offer")
            return
        }
        #expect(data.map(\.name) == ["socketId", "sdp", "more"])
    }

    @Test func whatIsRefused() {
        #expect(self.refusal("") == "|frame" && self.refusal("[]") == "|frame" && self.refusal(#"{"eventName":5}"#) == "|eventName")
        #expect(self.refusal(#"{"eventName":"__talk"}"#) == "__talk|eventName")
        #expect(self.refusal(#"{"eventName":"__join","data":[]}"#) == "__join|data")
        #expect(self.refusal(#"{"eventName":"__join","data":{"room":7}}"#) == "__join|room")
        #expect(self.refusal(#"{"eventName":"__join","data":{"room":"a\u0007"}}"#) == "__join|room")
        #expect(self.refusal(#"{"eventName":"__join","data":{"ice":1}}"#) == "__join|ice")
        let long = String(repeating: "r", count: 257)
        #expect(self.refusal(#"{"eventName":"__join","data":{"room":"\#(long)"}}"#) == "__join|room")
        #expect(self.refusal(#"{"eventName":"__offer","data":{"sdp":"x"}}"#) == "__offer|socketId")
        #expect(self.refusal(#"{"eventName":"__answer","data":{"socketId":"x"}}"#) == "__answer|sdp")
        #expect(self.refusal(#"{"eventName":"__ice_candidate","data":{"socketId":"x","candidate":null}}"#) == "__ice_candidate|candidate")
    }

    @Test func whatGoesOut() throws {
        var room = Gathering(limits: GatheringLimits(members: 8, offlineMs: 0))
        _ = try room.apply(.connect(id: "a", name: "a", role: "", ConnectionID(1)), nowMs: 1)
        let effects = try room.apply(.connect(id: "b", name: "b", role: "", ConnectionID(2)), nowMs: 2)
        let writer = MeshWriter(isDouble: false)
        let sent = effects.compactMap { effect -> (String, [UInt64])? in
            guard case .send(let signal, let receivers) = effect, let text = writer.frame(signal) else { return nil }
            return (text, receivers.map(\.rawValue))
        }
        #expect(
            sent.map(\.0) == [
                #"{"eventName":"_new_peer","data":{"socketId":"b"}}"#, #"{"eventName":"_peers","data":{"connections":["a"],"you":"b"}}"#,
            ])
        #expect(sent.map(\.1) == [[1], [2]])
        // The servers come with the list of peers only.
        let asked = effects.compactMap { effect -> String? in
            guard case .send(let signal, _) = effect else { return nil }
            return writer.frame(signal, ice: [["urls": ["stun:t.example"]]])
        }
        #expect(
            asked == [
                sent[0].0, #"{"eventName":"_peers","data":{"connections":["a"],"you":"b","iceServers":[{"urls":["stun:t.example"]}]}}"#,
            ])
        let member = try #require(room.member("b"))
        let candidate: [JSONValue.Member] = [
            .init(name: "socketId", value: "a"), .init(name: "label", value: 0), .init(name: "id", value: "audio"),
            .init(name: "candidate", value: "candidate:1"),
        ]
        #expect(
            MeshWriter(isDouble: true).frame(.directed(from: member, name: "ice_candidate", data: candidate))
                == #"{"eventName":"__ice_candidate","data":{"label":0,"id":"audio","candidate":"candidate:1","socketId":"b","sdpMLineIndex":0,"sdpMid":"audio"}}"#
        )
        // Without a name of the medium there is none to add.
        let bare = candidate.filter { $0.name != "id" }
        #expect(writer.frame(.directed(from: member, name: "ice_candidate", data: bare))?.contains("sdpMid") == false)
        #expect(
            writer.error("__join", code: "full", "It is full.")
                == #"{"eventName":"_error","data":{"event":"__join","code":"full","message":"It is full."}}"#)
    }
}
