import ArgumentParser
import AsyncHTTPClient
import FoundationEssentials
import LibC
import NIOCore
import NIOHTTP1
import Sockets
import Support
import WebRTC

/// Plays a stream by WHEP with many viewers, each with keys of its own. What comes is read, counted and dropped.
struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Play a stream by WHEP with many viewers, and measure the server meanwhile.")

    @Option(help: "The stream: http://127.0.0.1:PORT/whep/APP/NAME.")
    var url: String
    @Option(help: "Viewers.")
    var viewers = 100
    @Option(help: "Seconds that are measured.")
    var seconds = 10.0
    @Option(help: "Seconds between the last join and the measured ones: joiners' bursts are over then.")
    var warmup = 6.0
    @Option(help: "The server's process: its CPU and memory are measured.")
    var serverPid: Int32
    @Option(help: "Write the figures to this file.")
    var json: String?

    /// Viewers that come before memory is looked at: what the first ones need, the others need not.
    private static let first = 20
    private static let tickNs: UInt64 = 20_000_000

    func validate() throws {
        let bounds: [(String, ClosedRange<Double>, Double)] = [
            ("--viewers", Double(Self.first + 1)...5_000, Double(self.viewers)), ("--seconds", 1...600, self.seconds),
            ("--warmup", 0...60, self.warmup),
        ]
        for (name, range, value) in bounds where !range.contains(value) {
            throw ValidationError("\(name) is \(value); expected \(range.lowerBound) to \(range.upperBound)")
        }
        guard ["http://127.", "http://localhost:", "http://[::1]:"].contains(where: self.url.hasPrefix) else {
            throw ValidationError("--url is \(self.url); expected one of a loopback address, http://127.0.0.1:PORT/whep/APP/NAME")
        }
    }

    private struct Row: Codable {
        var viewers: Int
        var packetsPerSecond: Double
        var lostPercent: Double
        /// How much later than the least late of a viewer's pictures its others are.
        var delayP50Ms: Double?
        var delayP99Ms: Double?
        var usPerPacket: Double
        var usPerPacketOfUser: Double
        var coreShare: Double
        var kibPerViewer: Double
    }

    func run() async throws {
        OpenFiles.raiseLimit()
        let server = ProcessStats(pid: self.serverPid)
        let crowd = try Crowd()
        var before = 0
        for number in 0..<self.viewers {
            if number == Self.first {
                try crowd.run(untilNs: Clock.now() + UInt64(self.warmup * 1e9))
                before = server.residentBytes() ?? 0
            }
            try await self.join(crowd)
        }
        try crowd.run(untilNs: Clock.now() + UInt64(self.warmup * 1e9))
        let bytes = (server.residentBytes() ?? 0) - before
        crowd.forget()
        guard let from = server.cpuTimes() else { throw LoadError.timeout("the server has ended") }
        let began = Clock.now()
        try crowd.run(untilNs: began + UInt64(self.seconds * 1e9))
        guard let to = server.cpuTimes() else { throw LoadError.timeout("the server has ended") }
        let took = Double(Clock.now() - began) / 1e9
        let (user, system) = (Double(to.user - from.user), Double(to.system - from.system))
        let packets = Double(max(1, crowd.packets))
        let row = Row(
            viewers: self.viewers, packetsPerSecond: packets / took, lostPercent: 100 * Double(crowd.lost) / (packets + Double(crowd.lost)),
            delayP50Ms: crowd.delays.milliseconds(at: 0.5), delayP99Ms: crowd.delays.milliseconds(at: 0.99),
            usPerPacket: (user + system) / packets, usPerPacketOfUser: user / packets, coreShare: (user + system) / took / 1e6,
            kibPerViewer: Double(bytes) / 1_024 / Double(self.viewers - Self.first))
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
        let report = try encoder.encode(row)
        print(String(decoding: report, as: UTF8.self))
        if let json = self.json { try report.write(to: URL(filePath: json)) }
    }

    private func join(_ crowd: Crowd) async throws {
        let client = try WatchingClient()
        var request = HTTPClientRequest(url: self.url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/sdp")
        request.body = .bytes(ByteBuffer(string: client.offer))
        let answer = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
        let text = String(buffer: try await answer.body.collect(upTo: 1 << 20))
        guard answer.status == .created else {
            throw LoadError.publisher("WHEP was answered with \(answer.status.code): \(text.prefix(200))")
        }
        guard let candidate = try client.read(answer: text).first(where: { !$0.isStream }), let address = IPText.v4(candidate.address)
        else {
            throw LoadError.publisher("the answer names no address of IPv4")
        }
        let number = address.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        try crowd.add(client, address: number, port: UInt16(clamping: candidate.port))
        let deadline = Clock.now() + 10_000_000_000
        while !client.isConnected {
            guard Clock.now() < deadline, client.problem == nil else {
                throw LoadError.timeout("a viewer that connects: \(client.problem ?? "no answer")")
            }
            try crowd.run(untilNs: Clock.now() + Self.tickNs / 20)
        }
    }

    /// Viewers and their sockets, on one thread.
    private final class Crowd {
        private struct Member {
            let client: WatchingClient
            let socket: CInt
            /// The newest sequence numbers of pictures and of sound.
            var last: [UInt8: UInt16] = [:]
            /// When a picture came, and its time, to which those of others are compared; and the least of their delays. Microseconds.
            var first: (atUs: Int64, time: UInt32)?
            var leastUs = Int64.max
        }

        private let epoll: Epoll
        private var members: [Member] = []
        private var tickedNs: UInt64 = 0
        private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
        private let control = UnsafeMutableRawBufferPointer.allocate(byteCount: 64, alignment: 16)
        private(set) var packets = 0
        private(set) var lost = 0
        private(set) var delays = Histogram()

        /// linux/udp.h: UDP_GRO, by which the kernel hands over what was sent as one.
        private static let receiveOffload: CInt = 104

        init() throws(LoadError) { self.epoll = try Epoll.make() }

        deinit {
            for member in self.members { close(member.socket) }
            self.buffer.deallocate()
            self.control.deallocate()
        }

        func forget() { (self.packets, self.lost, self.delays) = (0, 0, Histogram()) }

        func add(_ client: WatchingClient, address: UInt32, port: UInt16) throws(LoadError) {
            let descriptor = socket(AF_INET, datagramSocket | CInt(SOCK_NONBLOCK.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
            guard descriptor >= 0 else { throw .system("socket", errno) }
            var target = sockaddr_in()
            target.sin_family = sa_family_t(AF_INET)
            target.sin_port = port.bigEndian
            target.sin_addr.s_addr = address.bigEndian
            let result = withUnsafePointer(to: &target) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            guard result == 0 else {
                let code = errno
                close(descriptor)
                throw .system("connect", code)
            }
            setSocketOption(descriptor, CInt(IPPROTO_UDP), Self.receiveOffload, 1)
            setSocketOption(descriptor, SOL_SOCKET, SO_RCVBUF, 1 << 20)
            client.begin(with: DatagramAddress(ipv4: address, port: port))
            try self.epoll.add(descriptor, token: UInt64(self.members.count), .read)
            self.members.append(Member(client: client, socket: descriptor))
        }

        func run(untilNs: UInt64) throws(LoadError) {
            while true {
                let now = Clock.now()
                if now - self.tickedNs >= Watch.tickNs {
                    self.tickedNs = now
                    for member in self.members {
                        member.client.tick(nowMs: Int64(now / 1_000_000))
                        self.send(member)
                    }
                }
                guard now < untilNs else { return }
                try self.epoll.poll(timeoutNs: min(untilNs - now, Watch.tickNs)) { (event) throws(LoadError) in
                    self.read(Int(event.token))
                }
            }
        }

        private func send(_ member: Member) {
            for datagram in member.client.popDatagrams() {
                // Lost if the socket is full: it is sent again.
                _ = datagram.withUnsafeBytes { LibC.send(member.socket, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            }
        }

        private func read(_ index: Int) {
            let nowUs = Int64(Clock.now() / 1_000)
            while true {
                var vector = iovec(iov_base: self.buffer.baseAddress, iov_len: self.buffer.count)
                var message = msghdr()
                message.msg_control = self.control.baseAddress
                message.msg_controllen = self.control.count
                let count = withUnsafeMutablePointer(to: &vector) { vector in
                    message.msg_iov = vector
                    message.msg_iovlen = 1
                    return recvmsg(self.members[index].socket, &message, 0)
                }
                guard count > 0 else { return }
                let segment = self.segment(Int(message.msg_controllen)) ?? count
                var offset = 0
                while offset < count {
                    let end = min(count, offset + segment)
                    self.note(UnsafeRawBufferPointer(rebasing: self.buffer[offset..<end]), index, nowUs)
                    offset = end
                }
            }
        }

        /// cmsg(3): length 8, level 4, type 4, the size of the pieces.
        private func segment(_ length: Int) -> Int? {
            guard length >= 20, self.control.load(fromByteOffset: 8, as: CInt.self) == CInt(IPPROTO_UDP),
                self.control.load(fromByteOffset: 12, as: CInt.self) == Self.receiveOffload
            else { return nil }
            let size = Int(self.control.load(fromByteOffset: 16, as: CInt.self))
            return size > 0 ? size : nil
        }

        private func note(_ datagram: UnsafeRawBufferPointer, _ index: Int, _ nowUs: Int64) {
            // RFC 7983 §7: RTP and RTCP begin with 128 to 191; RFC 5761 §4.
            guard datagram.count > 12, datagram[0] >> 6 == 2, self.members[index].client.isConnected else {
                self.members[index].client.receive(datagram)
                return self.send(self.members[index])
            }
            guard !(192...223).contains(datagram[1]) else { return }
            self.packets += 1
            let type = datagram[1] & 0x7F
            let number = UInt16(datagram[2]) << 8 | UInt16(datagram[3])
            if let last = self.members[index].last[type] {
                let step = number &- last
                if step > 1, step < 0x8000 { self.lost += Int(step) - 1 }
            }
            self.members[index].last[type] = number
            // The last packet of a picture.
            if type == WatchingClient.videoType, datagram[1] & 0x80 != 0 { self.noteDelay(datagram, index, nowUs) }
        }

        private func noteDelay(_ datagram: UnsafeRawBufferPointer, _ index: Int, _ nowUs: Int64) {
            let time = (4..<8).reduce(UInt32(0)) { $0 << 8 | UInt32(datagram[$1]) }
            guard let first = self.members[index].first else {
                self.members[index].first = (nowUs, time)
                return
            }
            let shownUs = Int64(Int32(bitPattern: time &- first.time)) * 1_000 / 90
            let delayUs = nowUs - first.atUs - shownUs
            self.members[index].leastUs = min(self.members[index].leastUs, delayUs)
            self.delays.record(microseconds: UInt64(max(0, delayUs - self.members[index].leastUs)))
        }
    }
}
