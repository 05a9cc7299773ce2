import DTLSSRTP
import Foundation
import Testing

@testable import WebRTC

/// Offers of real clients, and what is answered.
@Suite struct NegotiationTests {
    private static func recorded(_ name: String) throws -> String {
        let url = try #require(Bundle.module.url(forResource: "Offers/\(name)", withExtension: "sdp"))
        return try String(contentsOf: url, encoding: .utf8)
    }

    private static func own() throws -> Negotiation.Own {
        let transport = OwnTransport(
            user: "abcdefgh", password: "01234567890123456789abcdef", fingerprint: try DTLSContext().fingerprint,
            candidates: [("192.0.2.1", 8_189), ("2001:db8::1", 8_189)])
        return Negotiation.Own(transport, videoSource: 11, repeatSource: 12, soundSource: 13)
    }

    /// Chromium 156, headless, recvonly video and audio.
    @Test func chromium() throws {
        var negotiation = try Negotiation(SessionOffer(Self.recorded("chromium-156")))
        #expect(
            negotiation.remote.user == "HblJ" && negotiation.remote.fingerprints.count == 1 && negotiation.repeatsOnRequest
                && negotiation.hasVideo)
        // H.264 with packetization mode 1 alone: 42001f, 42e01f, 4d001f, f4001f.
        #expect(negotiation.video.filter { $0.profile.codec == .h264 }.count == 4 && negotiation.video.allSatisfy { $0.repeats != nil })
        #expect(negotiation.video.count == 10, "and VP9 and AV1")
        let isNarrow = negotiation.narrow(to: .h264(H264Profile(idc: 100, constraints: 0)))
        #expect(isNarrow && negotiation.video.count == 4)
        #expect(negotiation.sound[.pcmu] == 0 && negotiation.sound[.pcma] == 8 && negotiation.sound[.opus] == 111)
        let lines = try negotiation.answer(Self.own(), session: 7).split(separator: "\r\n").map(String.init)
        #expect(lines[0] == "v=0" && lines.contains("a=ice-lite") && lines.contains("a=group:BUNDLE 0 1"))
        #expect(lines.filter { $0.hasPrefix("m=") }.count == 2 && lines.filter { $0 == "a=sendonly" }.count == 2)
        #expect(lines.filter { $0 == "a=setup:passive" }.count == 2 && lines.filter { $0 == "a=rtcp-mux" }.count == 2)
        #expect(
            lines.filter { $0.hasPrefix("a=candidate:") } == [
                "a=candidate:1 1 udp 2130706431 192.0.2.1 8189 typ host", "a=candidate:2 1 udp 2130706175 2001:db8::1 8189 typ host",
            ])
        // What is answered was offered, with the same parameters.
        let offer = try Self.recorded("chromium-156")
        for line in lines where line.hasPrefix("a=fmtp:") && line.contains("profile-level-id") { #expect(offer.contains(line)) }
        // Each packet is reported, by the extension that was offered.
        let numbers = lines.filter { $0.hasPrefix("a=extmap:") }
        #expect(
            negotiation.videoNumber == 4 && negotiation.delayNumber == 5 && numbers.count == 3
                && numbers.allSatisfy { offer.contains("\n\($0)\r") || offer.contains("\n\($0)\n") })
        #expect(lines.filter { $0.hasSuffix(" transport-cc") }.count == 5)
        #expect(!lines.contains { $0.contains("VP8") || $0.contains("AV1") || $0.contains("packetization-mode=0") })
    }

    /// By TCP too, where the server says so: below all of UDP (RFC 6544 §4.2).
    @Test func candidatesByTCP() throws {
        var own = try Self.own()
        own.transport.acceptsStreams = true
        let answer = try Negotiation(SessionOffer(Self.recorded("chromium-156"))).answer(own, session: 7)
        #expect(
            answer.split(separator: "\r\n").filter { $0.contains(" tcp ") } == [
                "a=candidate:3 1 tcp 1520435199 192.0.2.1 8189 typ host tcptype passive",
                "a=candidate:4 1 tcp 1520434943 2001:db8::1 8189 typ host tcptype passive",
            ])
        let read = try SessionOffer(answer).media[0].candidates
        #expect(read.map(\.isStream) == [false, false, true, true] && read[3].address == "2001:db8::1")
    }

    /// Put together of what published offers of Safari 14 to 18 have: Constrained High and Constrained Baseline, of a level that no other offers; sendrecv.
    @Test func safari() throws {
        let negotiation = try Negotiation(SessionOffer(Self.recorded("safari")))
        func type(_ idc: UInt8, _ constraints: UInt8) -> UInt8? {
            negotiation.format(for: .h264(H264Profile(idc: idc, constraints: constraints)))?.payloadType
        }
        // Baseline, Constrained Baseline, Main, High, Constrained High.
        #expect(type(66, 0) == 96 && type(66, 0xE0) == 98 && type(77, 0) == 96 && type(100, 0) == 96 && type(100, 0x0C) == 96)
        #expect(negotiation.videoNumber == 3 && negotiation.soundNumber == 3 && negotiation.repeatsOnRequest)
        let lines = try negotiation.answer(Self.own(), session: 7).split(separator: "\r\n").map(String.init)
        #expect(lines.contains("m=video 8189 UDP/TLS/RTP/SAVPF 96 97 98 99") && lines.contains("m=audio 9 UDP/TLS/RTP/SAVPF 111 0 8"))
        #expect(lines.contains("a=fmtp:98 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e034"))
        #expect(lines.filter { $0 == "a=sendonly" }.count == 2 && !lines.contains("a=sendrecv"))
    }

    /// Put together of what published offers of Firefox have that has H.264: parameters before their formats, and a second H.264 without a mode.
    @Test func firefox() throws {
        var negotiation = try Negotiation(SessionOffer(Self.recorded("firefox-h264")))
        let isNarrow = negotiation.narrow(to: .h264(H264Profile(idc: 66, constraints: 0)))
        #expect(isNarrow && negotiation.video.map(\.payloadType) == [126] && negotiation.video[0].repeats == 127)
        #expect(negotiation.format(for: .h264(H264Profile(idc: 100, constraints: 0)))?.payloadType == 126)
        #expect(negotiation.videoNumber == 7 && negotiation.soundNumber == nil && negotiation.sound[.opus] == 109)
        let answer = try negotiation.answer(Self.own(), session: 7)
        #expect(answer.contains("a=fmtp:126 profile-level-id=42e01f;level-asymmetry-allowed=1;packetization-mode=1\r\n"))
        #expect(answer.contains("a=extmap:7 \(SessionOffer.transportNumberURI)\r\n") && !answer.contains("a=rtcp-fb:109"))
    }

    /// The format that covers the stream's profile; the level never matters.
    @Test func theFormatFollowsTheProfile() throws {
        let negotiation = try Negotiation(SessionOffer(Self.recorded("chromium-156")))
        func profile(_ idc: UInt8, _ constraints: UInt8 = 0) -> UInt8? {
            negotiation.format(for: .h264(H264Profile(idc: idc, constraints: constraints)))?.profile.number
        }
        #expect(profile(66, 0xE0) == 66 && profile(77) == 77)
        // High 4:4:4 (f4) decodes High, which is not offered.
        #expect(profile(100) == 0xF4)
        let main = try Negotiation(SessionOffer(Self.offer(video: ["96 42e01f", "97 4d001f"])))
        #expect(main.format(for: .h264(H264Profile(idc: 100, constraints: 0)))?.payloadType == 97, "the best that there is")
        // Safari's 640c and 42e0.
        let safari = try Negotiation(SessionOffer(Self.offer(video: ["98 42e01f", "96 640c1f"])))
        #expect(safari.format(for: .h264(H264Profile(idc: 100, constraints: 0x0C)))?.payloadType == 96)
        #expect(safari.format(for: .h264(H264Profile(idc: 66, constraints: 0xC0)))?.payloadType == 98)
    }

    /// What is answered to a client that decodes several codecs are those of the stream alone, in the profiles that it covers.
    @Test func theAnswerHasTheStreamsCodec() throws {
        let offer = try SessionOffer(Self.recorded("chromium-156"))
        func answered(_ profile: VideoProfile) throws -> [String]? {
            var negotiation = try Negotiation(offer)
            guard negotiation.narrow(to: profile) else {
                #expect(negotiation.format(for: profile) == nil)
                return nil
            }
            #expect(negotiation.format(for: profile)?.profile.codec == profile.codec && negotiation.repeatsOnRequest)
            let lines = try negotiation.answer(Self.own(), session: 7).split(separator: "\r\n").map(String.init)
            return lines.filter { $0.hasPrefix("a=rtpmap:") && !$0.contains("rtx") && !$0.contains("opus") && !$0.contains("PCM") }
        }
        #expect(try answered(.vp9(0)) == ["a=rtpmap:98 VP9/90000"] && answered(.vp9(2)) == ["a=rtpmap:100 VP9/90000"])
        #expect(try answered(.av1(0)) == ["a=rtpmap:45 AV1/90000", "a=rtpmap:47 AV1/90000"] && answered(.av1(2)) == nil)
        #expect(try answered(.h265(1)) == nil)
        // Main 10 decodes Main; packets on several streams are not sent.
        func offered(_ parameters: String) throws -> Negotiation {
            let text = Self.offer(video: ["96 42e01f"]).replacing("H264/90000", with: "H265/90000")
                .replacing("packetization-mode=1;profile-level-id=42e01f", with: parameters)
            return try Negotiation(SessionOffer(text))
        }
        #expect(try offered("level-id=93;profile-id=2").format(for: .h265(1))?.payloadType == 96)
        #expect(try offered("level-id=93").format(for: .h265(1))?.payloadType == 96 && offered("level-id=93").format(for: .h265(2)) == nil)
        #expect(try !offered("tx-mode=MRST").hasVideo && !offered("profile-id=x").hasVideo && offered("tx-mode=SRST").hasVideo)
    }

    /// Put together of what published offers have: Chrome 144 of macOS, with Main and Main 10; Safari, which names no parameters.
    @Test func browsersWithHEVC() throws {
        func offer(_ name: String, _ media: String, _ types: [Int], _ lines: String) throws -> Negotiation {
            let recorded = try Self.recorded(name)
            let line = try #require(recorded.split(whereSeparator: \.isNewline).first { $0.hasPrefix("m=video") })
            let changed = line + types.map { " \($0)" }.joined()
            return try Negotiation(SessionOffer(recorded.replacing(line, with: changed).replacing(media, with: lines + media)))
        }
        let end = "level-id=180;profile-id="
        var chrome = try offer(
            "chromium-156", "a=rtpmap:118 ", [50, 51, 52, 53],
            """
            a=rtpmap:50 H265/90000\r\na=rtcp-fb:50 transport-cc\r\na=rtcp-fb:50 nack\r\na=fmtp:50 \(end)1;tier-flag=0;tx-mode=SRST\r
            a=rtpmap:51 rtx/90000\r\na=fmtp:51 apt=50\r\na=rtpmap:52 H265/90000\r\na=rtcp-fb:52 transport-cc\r\na=rtcp-fb:52 nack\r
            a=fmtp:52 \(end)2;tier-flag=0;tx-mode=SRST\r\na=rtpmap:53 rtx/90000\r\na=fmtp:53 apt=52\r\n
            """)
        #expect(chrome.format(for: .h265(1))?.payloadType == 50 && chrome.format(for: .h265(2))?.payloadType == 52)
        #expect(chrome.format(for: .h265(4)) == nil)
        let isNarrow = chrome.narrow(to: .h265(1))
        let answer = try chrome.answer(Self.own(), session: 7)
        #expect(isNarrow && answer.contains("a=fmtp:50 level-id=180;profile-id=1;tier-flag=0;tx-mode=SRST\r\n"), "\(answer)")
        #expect(answer.contains("UDP/TLS/RTP/SAVPF 50 51 52 53\r\n") && chrome.repeatsOnRequest && chrome.videoNumber == 4)
        let safari = try offer("safari", "a=rtpmap:96 ", [120], "a=rtpmap:120 H265/90000\r\na=rtcp-fb:120 nack\r\n")
        #expect(safari.format(for: .h265(1))?.payloadType == 120 && safari.format(for: .h265(2)) == nil)
    }

    private static let fingerprint = "sha-256 " + Array(repeating: "AB", count: 32).joined(separator: ":")

    /// `video`: payload type and profile-level-id of each format.
    static func offer(
        video: [String] = ["96 42e01f"], sound: String? = "111 opus/48000/2", direction: String = "recvonly", setup: String = "actpass",
        atSession: Bool = true, extra: String = ""
    ) -> String {
        let transport = "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\na=fingerprint:\(Self.fingerprint)\r\na=setup:\(setup)\r\n"
        var text = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE v a\r\n" + (atSession ? transport : "")
        if !video.isEmpty {
            let types = video.map { $0.split(separator: " ")[0] }.joined(separator: " ")
            text += "m=video 9 UDP/TLS/RTP/SAVPF \(types)\r\na=mid:v\r\na=\(direction)\r\n" + (atSession ? "" : transport)
            for format in video {
                let words = format.split(separator: " ")
                text += "a=rtpmap:\(words[0]) H264/90000\r\na=fmtp:\(words[0]) packetization-mode=1;profile-level-id=\(words[1])\r\n"
            }
        }
        if let sound {
            text +=
                "m=audio 9 UDP/TLS/RTP/SAVPF \(sound.split(separator: " ")[0])\r\na=mid:a\r\na=\(direction)\r\n"
                + (atSession ? "" : transport)
            text += "a=rtpmap:\(sound)\r\n"
        }
        return text + extra
    }

    /// Credentials at the session's level (srs#3521) or at each m-line's; sendrecv (Safari); sound or video alone; lines twice (ZLM#3038).
    @Test func shapesOfOffers() throws {
        for atSession in [true, false] {
            let negotiation = try Negotiation(SessionOffer(Self.offer(direction: "sendrecv", atSession: atSession)))
            #expect(negotiation.hasVideo && negotiation.hasSound)
            let answer = try negotiation.answer(Self.own(), session: 1)
            #expect(answer.contains("a=sendonly") && !answer.contains("a=sendrecv"))
        }
        let alone = try Negotiation(SessionOffer(Self.offer(video: [])))
        #expect(!alone.hasVideo && alone.hasSound && !alone.wantsVideo)
        #expect(try alone.answer(Self.own(), session: 1).contains("a=group:BUNDLE a\r\n"))
        #expect(try !Negotiation(SessionOffer(Self.offer(sound: nil))).hasSound)
        #expect(try Negotiation(SessionOffer(Self.offer(extra: "a=mid:a\r\na=mid:a\r\n"))).hasSound)
        // Lines that end in \n alone.
        #expect(try Negotiation(SessionOffer(Self.offer().replacing("\r\n", with: "\n"))).hasVideo)
    }

    /// A rejected m-line keeps its place, with port 0.
    @Test func whatIsNotSentIsRejected() throws {
        let offer = Self.offer(extra: "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:d\r\n")
        let lines = try Negotiation(SessionOffer(offer)).answer(Self.own(), session: 1).split(separator: "\r\n").filter {
            $0.hasPrefix("m=")
        }
        #expect(lines.count == 3 && lines[2].hasPrefix("m=application 0 UDP/DTLS/SCTP"))
        // Firefox of Debian offers no H.264.
        let vp8 = Self.offer(video: []).replacing(
            "m=audio", with: "m=video 9 UDP/TLS/RTP/SAVPF 120\r\na=mid:v\r\na=recvonly\r\na=rtpmap:120 VP8/90000\r\nm=audio")
        let firefox = try Negotiation(SessionOffer(vp8))
        #expect(
            firefox.wantsVideo && !firefox.hasVideo && firefox.hasSound && firefox.offered() == "vp8, opus"
                && firefox.offered("video") == "vp8")
    }

    @Test func refusalsSayWhy() {
        func refusal(_ offer: String) -> SessionDescriptionError? {
            do throws(SessionDescriptionError) {
                _ = try Negotiation(try SessionOffer(offer))
                return nil
            } catch {
                return error
            }
        }
        #expect(refusal("") == .invalid(line: 1, "\"v=0\" is expected first"))
        #expect(refusal("hello") == .invalid(line: 1, "no \"type=value\""))
        #expect(refusal("v=0\r\n") == .missing("an m-line"))
        #expect(refusal(Self.offer(direction: "sendonly"))?.description.contains("a=recvonly") == true)
        #expect(refusal(Self.offer().replacing("a=ice-ufrag:abcd\r\n", with: "")) == .missing("a=ice-ufrag and a=ice-pwd"))
        #expect(refusal(Self.offer().replacing("abcd", with: "a d")) != nil && refusal(Self.offer().replacing("abcd", with: "abc")) != nil)
        #expect(refusal(Self.offer().replacing("sha-256", with: "sha-1")) == .missing("a=fingerprint with sha-256, sha-384 or sha-512"))
        #expect(refusal(String(repeating: "a=x\r\n", count: 20_000)) == .tooLong(bytes: 100_000, limit: 65_536))
        #expect(refusal("v=0\r\n" + String(repeating: "a=\n", count: 5_000)) == .tooMany("lines", limit: 4_096))
        let many = "v=0\r\n" + String(repeating: "m=audio 9 RTP 0\r\n", count: 17)
        #expect(refusal(many) == .tooMany("m-lines", limit: 16))
        #expect(refusal("v=0\r\nm=audio 9 RTP 200\r\n")?.description.contains("payload type") == true)
        #expect(refusal("v=0\r\nm=audio 99999 RTP 0\r\n") != nil && refusal("v=0\r\nm=audio\r\n") != nil)
    }
}
