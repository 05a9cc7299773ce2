import NIOCore
import Support
import Testing

@testable import DTLSSRTP
@testable import WebRTC

/// Both ends of a connection, with a network between that loses, delays and doubles datagrams as a seed says.
final class Link {
    final class Sent: PacketOutput {
        var packets: [[UInt8]] = []
        private let space = UnsafeMutableRawBufferPointer.allocate(byteCount: 4_096, alignment: 16)

        deinit { self.space.deallocate() }

        func reserve(_ count: Int) -> UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(rebasing: self.space[..<count]) }
        func commit(_ count: Int) { self.packets.append([UInt8](self.space[..<count])) }
    }

    let browser: FakeBrowser
    let peer: PeerConnection
    let own: Negotiation.Own
    let output = Sent()
    var nowMs: Int64 = 1_000
    private var generator: SplitMix
    private let loss: Double
    private let lateMs: Int64
    private var toBrowser: [(dueMs: Int64, bytes: [UInt8])] = []
    private var toServer: [(dueMs: Int64, bytes: [UInt8])] = []

    struct SplitMix: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            self.state &+= 0x9E37_79B9_7F4A_7C15
            var value = self.state
            value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
            return value ^ value >> 31
        }
    }

    init(seed: UInt64 = 1, loss: Double = 0, lateMs: Int64 = 0, browser: FakeBrowser? = nil, expected: Fingerprint? = nil) throws {
        let browser = try browser ?? FakeBrowser()
        self.browser = browser
        self.generator = SplitMix(state: seed)
        self.loss = loss
        self.lateMs = lateMs
        var offer = try SessionOffer(browser.offer)
        if let expected { offer.fingerprints = [expected] }
        let negotiation = try Negotiation(offer)
        let context = try DTLSContext()
        let transport = OwnTransport(
            user: "abcdefgh", password: "01234567890123456789abcdef", fingerprint: context.fingerprint,
            candidates: [("127.0.0.1", 8_189)])
        self.own = Negotiation.Own(transport, videoSource: 0x1111, repeatSource: 0x2222, soundSource: 0x3333)
        browser.serverUser = transport.user
        browser.serverPassword = transport.password
        self.peer = PeerConnection(negotiation, self.own, context, nowMs: self.nowMs)
    }

    private func put(_ bytes: [UInt8], into line: inout [(dueMs: Int64, bytes: [UInt8])]) {
        guard Double.random(in: 0..<1, using: &self.generator) >= self.loss else { return }
        for _ in 0..<(self.loss > 0 && Double.random(in: 0..<1, using: &self.generator) < 0.02 ? 2 : 1) {
            line.append((self.nowMs + (self.lateMs > 0 ? Int64.random(in: 0...self.lateMs, using: &self.generator) : 0), bytes))
        }
    }

    /// A time of both ends.
    func step(ms: Int64 = 1) {
        self.nowMs += ms
        for bytes in self.browser.outgoing { self.put(bytes, into: &self.toServer) }
        self.browser.outgoing = []
        self.peer.tick(nowMs: self.nowMs)
        for due in self.toServer.filter({ $0.dueMs <= self.nowMs }) {
            due.bytes.withUnsafeBytes { _ = self.peer.receive($0, from: self.browser.address, nowMs: self.nowMs) }
        }
        self.toServer.removeAll { $0.dueMs <= self.nowMs }
        for (_, bytes) in self.peer.popDatagrams() { self.put(bytes, into: &self.toBrowser) }
        for bytes in self.output.packets { self.put(bytes, into: &self.toBrowser) }
        self.output.packets = []
        for due in self.toBrowser.filter({ $0.dueMs <= self.nowMs }) { self.browser.receive(due.bytes) }
        self.toBrowser.removeAll { $0.dueMs <= self.nowMs }
    }

    /// Runs until the connection is up. DTLS repeats lost flights by the system's clock: such a run takes as long as it says.
    @discardableResult
    func connect(withinMs: Int64 = 300_000) async throws -> Bool {
        let end = ContinuousClock.now + .milliseconds(withinMs)
        var round = 0
        while self.peer.state != .connected || !self.browser.isConnected, !self.peer.isOver, ContinuousClock.now < end {
            if round % 50 == 0 { self.browser.check() }
            self.browser.shake()
            self.step()
            round += 1
            if self.loss > 0 { try await Task.sleep(for: .milliseconds(1)) }
        }
        return self.peer.state == .connected && self.browser.isConnected
    }

    /// A bundle of one slice of `count` bytes that begins with its number.
    static func picture(_ number: UInt32, _ count: Int, time: Int64, isKeyframe: Bool = false) -> Kept {
        var packetizer = H264Packetizer(
            sequenceSets: [ByteBuffer(bytes: [0x67, 0x42, 0xE0, 0x1F])], pictureSets: [ByteBuffer(bytes: [0x68, 1])])
        var unit = ByteBuffer(bytes: [isKeyframe ? 0x65 : 0x41, 0xC0])
        unit.writeInteger(number)
        unit.writeBytes((0..<count).map { UInt8(truncatingIfNeeded: $0) })
        return Kept(packetizer.bundle([unit], time: time) ?? ByteBuffer())
    }

    static func sound(_ number: UInt32, time: Int64) -> Kept {
        var writer = PacketBundle.Writer(.opus, time: time, capacity: 100)
        var payload = ByteBuffer(integer: number)
        payload.writeRepeatingByte(9, count: 60)
        writer.add(payload)
        return Kept(writer.finish())
    }

    /// Memory of a bundle, as the relay's slabs keep it.
    final class Kept {
        let bytes: UnsafeMutableRawBufferPointer
        init(_ buffer: ByteBuffer) {
            self.bytes = .allocate(byteCount: max(1, buffer.readableBytes), alignment: 16)
            buffer.withUnsafeReadableBytes { self.bytes.copyMemory(from: $0) }
        }
        deinit { self.bytes.deallocate() }
    }

    func send(_ kept: Kept) throws {
        let bundle = try #require(PacketBundle(UnsafeRawBufferPointer(kept.bytes)))
        try #require(self.peer.media).send(bundle, owner: kept, nowMs: self.nowMs, to: self.output)
    }

    /// Handles what the browser reports.
    func answerReports() -> Bool { self.peer.media?.receive(self.peer.popControlPackets(), nowMs: self.nowMs, to: self.output) ?? false }
}

@Suite struct PeerConnectionTests {
    @Test(arguments: ["SRTP_AEAD_AES_128_GCM:SRTP_AES128_CM_SHA1_80", "SRTP_AES128_CM_SHA1_80"]) func mediaArrives(
        _ profiles: String
    ) async throws {
        let link = try Link(browser: FakeBrowser(profiles: profiles))
        #expect(try await link.connect())
        for number in UInt32(0)..<100 {
            try link.send(Link.picture(number, number == 0 ? 5_000 : 900, time: Int64(number) * 3_600, isKeyframe: number == 0))
            try link.send(Link.sound(number, time: Int64(number) * 960))
            for _ in 0..<20 { link.step() }
        }
        let video = try #require(link.browser.packets[0x1111])
        let units = H264PacketizerTests.depacketized(video.map { Array($0.packet.dropFirst(12)) }).filter { [0x41, 0x65].contains($0[0]) }
        #expect(units.map { $0[2..<6].reduce(0) { $0 << 8 | UInt32($1) } } == Array(0..<100))
        #expect(link.browser.packets[0x3333]?.count == 100 && link.browser.refused == 0)
        // Payload types of the offer; the marker on each picture's last packet; one time for all packets of a picture.
        #expect(video.allSatisfy { $0.packet[1] & 0x7F == 102 } && video.filter { $0.packet[1] & 0x80 != 0 }.count == 100)
        #expect(try #require(video.first).index < 1 << 15)
        // A report a second, of both tracks on one line: 90 and 48 ticks of each are a millisecond.
        let report = try #require(link.peer.reportsDue(nowMs: link.nowMs, wallMs: 1_800_000_000_000))
        #expect(link.peer.reportsDue(nowMs: link.nowMs + 1, wallMs: 1_800_000_000_001) == nil)
        link.browser.receive(report)
        let clear = try #require(link.browser.control.last)
        func field(_ at: Int) -> UInt32 { clear[at..<(at + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
        #expect(field(4) == 0x1111 && field(32) == 0x3333 && clear[1] == 200 && clear[29] == 200)
        // What each track's newest packet has, against the stream's time zero: the last picture is of 99 × 40 ms, the last sound of 99 × 20.
        func zero(_ at: Int, _ ms: Int) -> Double { Double(field(at + 8)) + Double(field(at + 12)) / 4_294_967_296 - Double(ms) / 1_000 }
        #expect(abs(zero(0, 99 * 40) - zero(28, 99 * 20)) < 0.001)
        let newest = try #require(video.last).packet[4..<8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        #expect(field(16) == newest)
    }

    /// Lost packets are asked for and come again, from the original's sequence number or by RFC 4588.
    @Test(arguments: 0..<8) func repairs(_ seed: UInt64) async throws {
        let link = try Link(seed: seed + 1, loss: 0.05, lateMs: 8)
        #expect(try await link.connect())
        for number in UInt32(0)..<300 {
            try link.send(Link.picture(number, 3_000, time: Int64(number) * 3_600, isKeyframe: number == 0))
            for _ in 0..<40 { link.step() }
            // As a browser: what is missing between the lowest and the highest that came, every 40 ms.
            let got = Self.sequence(link)
            guard let low = got.min(), let high = got.max() else { continue }
            let missing = (low...high).filter { !got.contains($0) }.map { UInt16(truncatingIfNeeded: $0) }
            if !missing.isEmpty { link.browser.reportMissing(Array(missing.prefix(50)), of: 0x1111) }
            _ = link.answerReports()
        }
        for _ in 0..<20 {
            let got = Self.sequence(link)
            let missing = ((got.min() ?? 0)...(got.max() ?? 0)).filter { !got.contains($0) }.map { UInt16(truncatingIfNeeded: $0) }
            if missing.isEmpty { break }
            link.browser.reportMissing(missing, of: 0x1111)
            for _ in 0..<30 { link.step() }
            _ = link.answerReports()
        }
        let got = Self.sequence(link)
        #expect(got.count == Int((got.max() ?? 0) - (got.min() ?? 0)) + 1, "all of them, seed \(seed)")
        #expect((link.peer.media?.repeated ?? 0) > 10)
    }

    /// The indices that came, repeats by the number that they have in front.
    private static func sequence(_ link: Link) -> Set<UInt64> {
        var got = Set((link.browser.packets[0x1111] ?? []).map(\.index))
        let highest = got.max() ?? 0
        for (_, packet) in link.browser.packets[0x2222] ?? [] {
            got.insert(SRTPReceiver.index(of: UInt16(packet[12]) << 8 | UInt16(packet[13]), near: highest))
        }
        return got
    }

    /// Where the browser offers it, packets of all tracks carry one count, repeats too, and its reports of them are read.
    @Test(arguments: [true, false]) func packetsAreCounted(_ offersRepeats: Bool) async throws {
        let browser = try FakeBrowser()
        (browser.reportsArrivals, browser.offersRepeats) = (true, offersRepeats)
        let link = try Link(browser: browser)
        #expect(try await link.connect())
        try link.send(Link.picture(1, 5_000, time: 90_000, isKeyframe: true))
        try link.send(Link.sound(1, time: 48_000))
        let sent = link.output.packets
        for _ in 0..<20 { link.step() }
        let video = try #require(browser.packets[0x1111]).map(\.packet)
        // RFC 8285 §4.2: one element, of two bytes.
        #expect(video.allSatisfy { $0[0] == 0x90 && Array($0[12..<17]) == [0xBE, 0xDE, 0, 1, 0x41] })
        #expect(video.map { UInt16($0[17]) << 8 | UInt16($0[18]) } == Array(1...6) && video.allSatisfy { $0.count <= 1_200 - 16 })
        let units = H264PacketizerTests.depacketized(video.map { Array($0.dropFirst(20)) }).filter { [0x41, 0x65].contains($0[0]) }
        #expect(units.map(\.count) == [5_006])
        // Sound's m-line did not offer it.
        #expect(try #require(browser.packets[0x3333]?.first).packet[0] == 0x80)

        browser.reportArrivals(1, [100, 101, nil, 101, 102, 104])
        browser.reportMissing([UInt16(sent[2][2]) << 8 | UInt16(sent[2][3])], of: 0x1111)
        for _ in 0..<5 { link.step() }
        _ = link.answerReports()
        let line = try #require(link.peer.media?.line)
        #expect(abs(line.loss - 1.0 / 6) < 0.001 && line.verdict(nowMs: link.nowMs) == .lossy && line.queuedMs != nil)
        // The repeat has a number of its own; the same packet once more has the bytes that it had.
        #expect(line.nextNumber == (offersRepeats ? 8 : 7))
        #expect(link.output.packets.count == 1 && (offersRepeats || link.output.packets[0] == sent[2]))
    }

    /// Whoever asks for more repeats than there may be gets keyframes, then sound alone; once all is well everything again, from a keyframe on.
    @Test func aLineThatDoesNotTakeThePictures() async throws {
        let link = try Link()
        #expect(try await link.connect())
        let media = try #require(link.peer.media)
        var number: UInt32 = 0
        /// A second of the stream: how many pictures and packets of sound went out.
        func second(isFlooding: Bool) throws -> (pictures: Int, sound: Int) {
            let (before, heard) = (link.browser.packets[0x1111]?.count ?? 0, link.browser.packets[0x3333]?.count ?? 0)
            for step in 0..<25 {
                try link.send(Link.picture(number, 100, time: Int64(number) * 3_600, isKeyframe: step == 12))
                try link.send(Link.sound(number, time: Int64(number) * 1_920))
                number += 1
                if isFlooding, let newest = link.browser.packets[0x1111]?.last?.index {
                    let wanted = (0..<60).map { UInt16(truncatingIfNeeded: newest &- UInt64($0 % 2)) }
                    for _ in 0..<3 { link.browser.reportMissing(wanted, of: 0x1111) }
                }
                for _ in 0..<40 { link.step() }
                _ = link.answerReports()
            }
            if !isFlooding { for source: UInt32 in [0x1111, 0x3333] { link.browser.reportReception(of: source, fractionLost: 0) } }
            for _ in 0..<5 { link.step() }
            _ = link.answerReports()
            _ = media.judgeLine(nowMs: link.nowMs)
            return ((link.browser.packets[0x1111]?.count ?? 0) - before, (link.browser.packets[0x3333]?.count ?? 0) - heard)
        }
        #expect(try second(isFlooding: false).pictures > 25 && media.relief.stage == .all)
        var stages: [LineRelief.Stage] = []
        for _ in 0..<20 where media.relief.stage != .sound {
            _ = try second(isFlooding: true)
            if stages.last != media.relief.stage { stages.append(media.relief.stage) }
        }
        #expect(stages == [.all, .keyframes, .sound])
        let alone = try second(isFlooding: false)
        #expect(alone.pictures == 0 && alone.sound == 25 && media.spared > 25)
        for _ in 0..<40 where media.relief.stage == .sound { _ = try second(isFlooding: false) }
        let keyframes = try second(isFlooding: false)
        // Of its sets and its slice.
        #expect(media.relief.stage == .keyframes && keyframes.pictures == 2, "\(keyframes)")
        for _ in 0..<40 where media.relief.stage != .all { _ = try second(isFlooding: false) }
        // The first half second is that of the group that is under way.
        let first = try second(isFlooding: false)
        #expect((14...15).contains(first.pictures) && media.relief.stage == .all, "\(first)")
    }

    /// A keyframe tells for how long pictures are held back, beside the count or without it; others do not, nor does a stream without sound.
    @Test(arguments: [true, false]) func picturesAreHeldBack(_ isCounted: Bool) async throws {
        let browser = try FakeBrowser()
        (browser.knowsDelay, browser.reportsArrivals, browser.offersRepeats) = (true, isCounted, false)
        let link = try Link(browser: browser)
        #expect(try await link.connect())
        try link.send(Link.picture(1, 100, time: 90_000, isKeyframe: true))
        try #require(link.peer.media).holdsPicturesBack = true
        try link.send(Link.picture(2, 5_000, time: 93_600, isKeyframe: true))
        try link.send(Link.picture(3, 100, time: 97_200))
        let sent = link.output.packets
        for _ in 0..<20 { link.step() }
        let packets = try #require(browser.packets[0x1111]).map(\.packet)
        #expect(packets.count == 9 && packets.allSatisfy { $0.count <= 1_200 - 16 })
        let count: [UInt8] = isCounted ? [0xBE, 0xDE, 0, 2] : [0xBE, 0xDE, 0, 1]
        for packet in packets[2..<8] {
            // 100 ms to 10 s, in twelve bits each.
            #expect(
                packet[0] == 0x90 && Array(packet[12..<16]) == count
                    && Array(packet[(isCounted ? 20 : 16)...].prefix(4)) == [0x52, 0, 0xA3, 0xE8])
        }
        for packet in packets[..<2] + packets[8...] { #expect(isCounted ? packet[15] == 1 : packet[0] == 0x80) }
        // What comes again is the same, to the bit.
        browser.reportMissing(sent.map { UInt16($0[2]) << 8 | UInt16($0[3]) }, of: 0x1111)
        for _ in 0..<3 { link.step() }
        _ = link.answerReports()
        #expect(link.output.packets == sent)
    }

    /// Without RFC 4588 the same packet comes again, to the bit: another under its number would give the key away.
    @Test func repeatsAreTheSamePackets() async throws {
        let browser = try FakeBrowser()
        browser.offersRepeats = false
        let link = try Link(browser: browser)
        #expect(try await link.connect())
        try link.send(Link.picture(1, 5_000, time: 90_000, isKeyframe: true))
        let sent = link.output.packets
        link.step()
        let numbers = sent.map { UInt16($0[2]) << 8 | UInt16($0[3]) }
        link.browser.reportMissing(numbers, of: 0x1111)
        link.step()
        link.step()
        _ = link.answerReports()
        #expect(sent.count == 6 && link.output.packets == sent && link.peer.media?.repeated == 6)
    }

    /// Times of a joiner's cached pictures are those at which they go out, each behind the one before; also of those that came meanwhile.
    @Test func aJoinersPicturesAreSqueezed() async throws {
        let link = try Link()
        #expect(try await link.connect())
        let media = try #require(link.peer.media)
        media.begin(first: 0, live: 200 * 3_600, nowMs: link.nowMs)
        // One a millisecond: five come meanwhile.
        for number in UInt32(0)..<215 {
            try link.send(Link.picture(number, 10, time: Int64(number) * 3_600, isKeyframe: number == 0))
            link.step(ms: number < 205 ? 1 : 40)
        }
        let times = (link.browser.packets[0x1111] ?? []).filter { $0.packet[1] & 0x80 != 0 }.map { packet in
            packet.packet[4..<8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        let steps = zip(times.dropFirst(), times).map { Int32(bitPattern: $0 &- $1) }
        #expect(steps.prefix(199).allSatisfy { $0 == 90 } && steps[200..<204].allSatisfy { $0 == 1 })
        // The first that came after the burst is shown at its own time.
        #expect(steps[205...].allSatisfy { $0 == 3_600 } && (1...3_600).contains(steps[204]), "\(steps.suffix(16))")
    }

    @Test func keyframesAreGivenTwiceASecondAtMost() async throws {
        let link = try Link()
        #expect(try await link.connect())
        var given = 0
        for _ in 0..<100 {
            link.browser.askForKeyframe(of: 0x1111)
            for _ in 0..<20 { link.step() }
            if link.answerReports() { given += 1 }
        }
        // 0, 0.5 and 1.5 s: each that did not help makes the next wait twice as long.
        #expect(given == 3 && link.peer.media?.keyframeRequests == 100, "\(given)")
    }

    // MARK: Safety

    /// Nothing but a check with this session's password gets an answer.
    @Test func strangersGetNothing() throws {
        let link = try Link()
        link.browser.check(password: "wrongwrongwrongwrongwrong")
        link.browser.check(user: "abcdefgh:other")
        link.browser.check(user: "other:brws")
        link.browser.shake()
        let sent = link.browser.outgoing
        for bytes in sent { bytes.withUnsafeBytes { _ = link.peer.receive($0, from: link.browser.address, nowMs: 1_001) } }
        #expect(link.peer.popDatagrams().isEmpty && link.peer.state == .checking && link.peer.checks == 0)
        for length in 0..<64 {
            for first in [UInt8(0), 22, 128, 255] {
                [UInt8](repeating: first, count: length).withUnsafeBytes {
                    _ = link.peer.receive($0, from: link.browser.address, nowMs: 1_001)
                }
            }
        }
        #expect(link.peer.popDatagrams().isEmpty)
    }

    /// A client cannot aim media at another: an address that does not answer a check of ours gets none.
    @Test func mediaGoesOnlyWhereItIsWanted() async throws {
        let link = try Link()
        link.browser.answersChecks = false
        for round in 0..<2_000 {
            if round % 50 == 0 { link.browser.check() }
            link.browser.shake()
            link.step()
        }
        #expect(link.peer.state == .handshaking && link.peer.address == nil && !link.browser.isConnected, "no flight either")
        link.nowMs += 31_000
        link.peer.tick(nowMs: link.nowMs)
        #expect(link.peer.state == .over(.neverProven))
    }

    /// A connected client's forged check names a victim: it is asked whether it wants media, ten times at most, and gets none.
    @Test func aForgedAddressIsNotFollowed() async throws {
        let link = try Link()
        #expect(try await link.connect())
        let own = link.browser.address
        let victim = DatagramAddress(ipv4: 0xC000_0201, port: 9)
        link.browser.check()
        let forged = link.browser.outgoing
        link.browser.outgoing = []
        for bytes in forged { bytes.withUnsafeBytes { _ = link.peer.receive($0, from: victim, nowMs: link.nowMs) } }
        var sent = 0
        for _ in 0..<20_000 {
            link.nowMs += 1
            link.peer.tick(nowMs: link.nowMs)
            for (to, bytes) in link.peer.popDatagrams() {
                if to == victim { sent += 1 } else { link.browser.receive(bytes) }
            }
            for bytes in link.browser.outgoing { bytes.withUnsafeBytes { _ = link.peer.receive($0, from: own, nowMs: link.nowMs) } }
            link.browser.outgoing = []
        }
        #expect(link.peer.address == own && (1...12).contains(sent), "\(sent) to the victim")
    }

    /// A browser that changes networks goes on from its new address, once that has answered; and from the old one, if it goes back much later.
    @Test func aMovedClientGoesOn() async throws {
        let link = try Link()
        #expect(try await link.connect())
        for port in [UInt16(6_000), 5_000, 6_000] {
            link.browser.address = DatagramAddress(ipv4: 0x7F00_0001, port: port)
            link.browser.check()
            for _ in 0..<50 { link.step() }
            #expect(link.peer.address?.port == port)
            for _ in 0..<40_000 { link.step() }
            #expect(link.peer.state == .connected)
        }
    }

    /// A TCP connection that closes is gone at once. The client goes on by another one, and is waited for as one that does not answer.
    @Test func aLostConnection() async throws {
        let link = try Link()
        #expect(try await link.connect())
        link.peer.lost(try #require(link.peer.address), nowMs: link.nowMs)
        #expect(link.peer.address == nil && link.peer.state == .connected)
        link.browser.address = DatagramAddress(ipv4: 0x7F00_0001, port: 6_000).by(7)
        link.browser.check()
        for _ in 0..<50 { link.step() }
        #expect(link.peer.address == link.browser.address)
        link.peer.lost(link.browser.address, nowMs: link.nowMs)
        for _ in 0..<29_000 { link.step() }
        #expect(link.peer.address == nil && link.peer.state == .connected)
        for _ in 0..<2_000 { link.step() }
        #expect(link.peer.state == .over(.consentExpired))
    }

    /// A client that never proves its address cannot make the server collect its reports.
    @Test func reportsAreBounded() async throws {
        let link = try Link()
        #expect(try await link.connect())
        for _ in 0..<2_000 { link.browser.askForKeyframe(of: 0x1111) }
        link.step()
        link.step()
        #expect(link.peer.popControlPackets().count == 256)
    }

    @Test func anotherCertificateIsRefused() async throws {
        let link = try Link(expected: DTLSContext().fingerprint)
        #expect(try await !link.connect())
        #expect(link.peer.state == .over(.handshake(.wrongFingerprint)) && link.peer.media == nil)
    }

    @Test func aClientWithoutSRTPIsRefused() async throws {
        let link = try Link(browser: FakeBrowser(profiles: ""))
        #expect(try await !link.connect())
        #expect(link.peer.state == .over(.handshake(.noProfile)))
    }

    @Test func goodbyesAndSilence() async throws {
        let link = try Link()
        #expect(try await link.connect())
        link.browser.close()
        for _ in 0..<5 { link.step() }
        #expect(link.peer.state == .over(.goodbye))

        let silent = try Link()
        #expect(try await silent.connect())
        silent.browser.answersChecks = false
        for _ in 0..<28_000 { silent.step() }
        #expect(silent.peer.state == .connected)
        for _ in 0..<8_000 { silent.step() }
        #expect(silent.peer.state == .over(.consentExpired))

        let never = try Link()
        never.peer.tick(nowMs: never.nowMs + 30_000)
        #expect(never.peer.state == .over(.neverChecked))
    }
}
