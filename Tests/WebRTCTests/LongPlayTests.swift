import Testing

@testable import DTLSSRTP
@testable import WebRTC

/// An hour of playing in seconds: numbers roll over, packets are lost, late and doubled, and the viewer asks for what it lacks.
@Suite struct LongPlayTests {
    /// What a browser's jitter buffer keeps of a track of pictures: which numbers came, and for which it has asked.
    private struct Buffer {
        var got: Set<UInt64> = []
        var lowest = UInt64.max
        var highest: UInt64 = 0
        var missing: [UInt64: Int64] = [:]
        /// By the first four bytes of the slice, in order of the packets' numbers.
        var pictures: [(index: UInt64, number: UInt32)] = []

        mutating func add(_ index: UInt64, _ payload: ArraySlice<UInt8>) {
            if self.got.isEmpty { (self.lowest, self.highest) = (index, index) }
            guard index >= self.lowest, self.got.insert(index).inserted else { return }
            if index > self.highest + 1 { for lost in (self.highest + 1)..<index { self.missing[lost] = .min } }
            self.highest = max(self.highest, index)
            self.missing[index] = nil
            let start = payload.startIndex
            // A slice in one packet.
            guard payload[start] == 0x41 else { return }
            self.pictures.append((index, payload[(start + 2)..<(start + 6)].reduce(0) { $0 << 8 | UInt32($1) }))
        }

        /// Asks again each 100 ms, as browsers do by the round trip.
        mutating func wanted(nowMs: Int64) -> [UInt16] {
            let due = self.missing.filter { $0.value == .min || nowMs - $0.value >= 100 }.keys.sorted().prefix(60)
            for index in due { self.missing[index] = nowMs }
            return due.map { UInt16(truncatingIfNeeded: $0) }
        }
    }

    @Test(arguments: [UInt64(1), 2]) func anHour(_ seed: UInt64) async throws {
        let browser = try FakeBrowser()
        (browser.reportsArrivals, browser.offersRepeats) = (true, seed == 1)
        let link = try Link(seed: seed, loss: 0.03, lateMs: 30, browser: browser)
        #expect(try await link.connect())
        var buffer = Buffer()
        var read = (video: 0, repeats: 0)
        var arrived: [(number: UInt16, ms: Int64)] = []
        var reported: UInt16 = 1
        var losses: [Double] = []
        let startMs = link.nowMs
        for number in UInt32(0)..<(60 * 60 * 25) {
            let isKeyframe = number % 250 == 0
            try link.send(Link.picture(number, isKeyframe ? 5_000 : 60, time: Int64(number) * 3_600, isKeyframe: isKeyframe))
            for part in UInt32(0)..<2 { try link.send(Link.sound(number * 2 + part, time: Int64(number * 2 + part) * 960)) }
            for _ in 0..<4 { link.step(ms: 10) }
            let (video, repeats) = (browser.packets[0x1111] ?? [], browser.packets[0x2222] ?? [])
            for (index, packet) in video[read.video...] {
                buffer.add(index, packet[20...])
                arrived.append((UInt16(packet[17]) << 8 | UInt16(packet[18]), link.nowMs))
            }
            for (_, packet) in repeats[read.repeats...] {
                let original = SRTPReceiver.index(of: UInt16(packet[20]) << 8 | UInt16(packet[21]), near: buffer.highest)
                buffer.add(original, packet[22...])
                arrived.append((UInt16(packet[17]) << 8 | UInt16(packet[18]), link.nowMs))
            }
            read = (video.count, repeats.count)
            let wanted = buffer.wanted(nowMs: link.nowMs)
            if !wanted.isEmpty { browser.reportMissing(wanted, of: 0x1111) }
            if number % 5 == 4 { Self.report(browser, &arrived, &reported) }
            _ = link.answerReports()
            if number % 500 == 499, let line = link.peer.media?.line {
                losses.append(line.loss)
                #expect([.good, .lossy].contains(line.verdict(nowMs: link.nowMs)))
            }
            if number % 25 == 0, let report = link.peer.reportsDue(nowMs: link.nowMs, wallMs: 1_800_000_000_000 + link.nowMs) {
                browser.receive(report)
            }
        }
        #expect(link.peer.state == .connected)
        #expect(link.nowMs - startMs == 3_600_000)
        // Both tracks' numbers rolled over, and nothing of the pictures is missing but what is under way.
        let sounds = browser.packets[0x3333] ?? []
        #expect(buffer.highest > 1 << 16 && sounds.last.map { $0.index > 2 << 16 } == true)
        #expect(buffer.missing.count < 20 && buffer.missing.keys.allSatisfy { $0 + 200 > buffer.highest }, "\(buffer.missing.count)")
        let pictures = buffer.pictures.sorted { $0.index < $1.index }.map(\.number)
        #expect(pictures.count > 89_600 - 20 && zip(pictures, pictures.dropFirst()).allSatisfy { $0 < $1 && $1 - $0 <= 2 })
        #expect((170_000...180_000).contains(sounds.count), "\(sounds.count)")
        // Of a hundred or two packets each, but on the whole what the network loses.
        let loss = losses.reduce(0, +) / Double(losses.count)
        #expect((0.02...0.04).contains(loss), "\(loss)")
        try Self.expectOneLine(browser.control)
    }

    /// Reports the packets since the last report, as far as they have come.
    private static func report(_ browser: FakeBrowser, _ arrived: inout [(number: UInt16, ms: Int64)], _ reported: inout UInt16) {
        // One that came late is reported again, with all since.
        let late = arrived.map { Int16(bitPattern: $0.number &- reported) }.min() ?? 0
        let first = reported &+ UInt16(bitPattern: min(0, late))
        var times: [Int: Int64] = [:]
        for (number, ms) in arrived { times[Int(number &- first)] = ms }
        arrived = []
        guard let last = times.keys.max() else { return }
        browser.reportArrivals(first, (0...last).map { times[$0] })
        let end = first &+ UInt16(last + 1)
        if Int16(bitPattern: end &- reported) > 0 { reported = end }
    }

    /// All sender reports of both tracks lie on one line of time: an hour's end as its beginning.
    private static func expectOneLine(_ control: [[UInt8]]) throws {
        var zeros: [UInt32: [Double]] = [:]
        var firsts: [UInt32: (rtp: UInt32, ntp: Double)] = [:]
        for packet in control where packet.count >= 56 && packet[1] == 200 {
            for at in [0, 28] where packet[at + 1] == 200 {
                func field(_ offset: Int) -> UInt32 { packet[(at + offset)..<(at + offset + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
                let source = field(4)
                let ntp = Double(field(8)) + Double(field(12)) / 4_294_967_296
                let first = firsts[source] ?? (field(16), ntp)
                firsts[source] = first
                let rate = source == 0x1111 ? 90_000.0 : 48_000.0
                zeros[source, default: []].append(ntp - first.ntp - Double(field(16) &- first.rtp) / rate)
            }
        }
        for source in [UInt32(0x1111), 0x3333] {
            let offsets = try #require(zeros[source])
            #expect(offsets.count > 3_000 && offsets.allSatisfy { abs($0) < 0.001 })
        }
    }
}
