import RTMP
import Testing

/// The exact limits on the properties of `connect` that a session keeps.
@Suite struct ConnectLimitTests {
    private func request(_ properties: [AMF0Property]) throws -> ConnectRequest {
        var server = Server()
        let outputs = try server.send(Command("connect", transaction: 1, object: .object(properties)))
        guard case .connect(let request)? = outputs.first else {
            Issue.record("connect is to be decided: \(outputs)")
            throw RTMPError.unexpectedCommand("connect")
        }
        return request
    }

    private func text(_ count: Int) -> String { String(repeating: "a", count: count) }

    @Test(arguments: ["tcUrl", "flashVer"]) func `texts that are only shown are cut`(name: String) throws {
        for (count, kept) in [(0, 0), (1_024, 1_024), (1_025, 1_024), (60_000, 1_024)] {
            let request = try self.request([AMF0Property(name: name, value: .string(self.text(count)))])
            #expect((name == "tcUrl" ? request.tcUrl : request.flashVersion) == self.text(kept))
        }
    }

    @Test func `a path between servers is kept whole or not at all`() throws {
        for (count, isKept) in [(0, true), (2_048, true), (2_049, false)] {
            let request = try self.request([AMF0Property(name: "earshotPath", value: .string(self.text(count)))])
            #expect(request.earshotPath == (isKept ? self.text(count) : nil))
        }
    }

    @Test func `so many codecs of four letters`() throws {
        let names = (0..<66).map { "c\($0)" }
        for count in [63, 64, 65, 66] {
            let list = names.prefix(count).map { AMF0Value.string($0) }
            let request = try self.request([AMF0Property(name: "fourCcList", value: .strictArray(list))])
            #expect(request.fourCCs == Array(names.prefix(min(count, 64))))
        }
        let odd: AMF0Value = .strictArray([.string("hvc1"), .string("hvc11"), .number(4), .string("*"), .string("éé"), .string("ééé")])
        #expect(try self.request([AMF0Property(name: "fourCcList", value: odd)]).fourCCs == ["hvc1", "*", "éé"])
    }

    /// FourCcInfoMask of Enhanced RTMP v2: 1 decodes, 2 encodes, 4 forwards.
    @Test(
        arguments: [
            (.number(0), false), (.number(1), true), (.number(2), false), (.number(3), true), (.number(4), true), (.number(5), true),
            (.number(6), true), (.number(8), false), (.number(65_535), true), (.number(65_537), false), (.number(65_536), false),
            (.number(-1), false),
            (.number(.nan), false), (.number(.infinity), false), (.string("x"), true), (.null, true),
        ] as [(AMF0Value, Bool)])
    func `codecs that a client can take`(mask: AMF0Value, isTaken: Bool) throws {
        for map in ["videoFourCcInfoMap", "audioFourCcInfoMap"] {
            for value in [
                AMF0Value.object([AMF0Property(name: "av01", value: mask)]), .ecmaArray([AMF0Property(name: "av01", value: mask)]),
            ] {
                let request = try self.request([AMF0Property(name: map, value: value)])
                #expect(request.fourCCs == (isTaken ? ["av01"] : []) && request.isEnhanced)
            }
        }
    }

    @Test func `an app may stand in tcUrl alone`() throws {
        for (url, app) in [
            ("rtmp://h/live", "live"), ("rtmp://h/live/x?y", "live/x?y"), ("rtmp://h", ""), ("h/live", ""), ("rtmp://h/", ""),
        ] {
            #expect(try self.request([AMF0Property(name: "tcUrl", value: .string(url))]).app == app)
        }
    }

    @Test func `who is going to publish says so`() throws {
        #expect(try self.request([AMF0Property(name: "type", value: .string("nonprivate"))]).announcesPublish)
        #expect(try !self.request([AMF0Property(name: "type", value: .string("private"))]).announcesPublish)
        #expect(try !self.request([]).announcesPublish)
        #expect(try !self.request([]).isEnhanced)
    }
}
