import Support
import Testing

@testable import CommandSupport
@testable import Commands
@testable import Doctor
@testable import earshot

/// The doctor's verdicts on given figures and texts, without a machine or a server.
@Suite struct DoctorJudgeTests {
    @Test(
        arguments: [
            (0, .synchronised, nil, .fail), (1_900_000_000, .synchronised, nil, .pass), (1_900_000_000, .unknown, nil, .pass),
            (1_900_000_000, .free, nil, .warn), (1_900_000_000, .synchronised, 1_900_000_050, .pass),
            (1_900_000_000, .synchronised, 1_900_000_100, .fail), (3_000_000_000, .synchronised, nil, .fail),
        ] as [(Int64, ClockState, Int64?, DoctorResult.Status)])
    func clocks(_ now: Int64, _ state: ClockState, _ newest: Int64?, _ status: DoctorResult.Status) {
        #expect(ClockCheck.judge(now: now, state: state, newestFile: newest).status == status)
    }

    @Test(
        arguments: [(0, .pass), (5, .pass), (-5, .pass), (6, .warn), (-60, .warn), (61, .fail), (-86_400, .fail)]
            as [(Int64, DoctorResult.Status)])
    func serversClocks(_ ahead: Int64, _ status: DoctorResult.Status) {
        #expect(ClockCheck.judge(here: 1_900_000_000, server: 1_900_000_000 + ahead).status == status)
        #expect(ClockCheck.judge(here: 1_900_000_000, server: nil).status == .skip)
    }

    /// Expected values by `date -u -d … +%s`.
    @Test func httpDates() {
        #expect(HTTPDate.seconds("Sun, 06 Nov 1994 08:49:37 GMT") == 784_111_777)
        #expect(HTTPDate.seconds("Thu, 26 Nov 2026 07:00:00 GMT") == 1_795_676_400)
        for wrong in ["", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 CET", "a b c d e GMT"] {
            #expect(HTTPDate.seconds(wrong) == nil)
        }
    }

    @Test func disks() {
        func status(_ free: Int, _ size: Int, inodes: Int = 1_000_000, minFree: Int = 1_000) -> DoctorResult.Status {
            let space = DiskChecks.Space(free: free, size: size, freeInodes: inodes, inodes: 1_000_000)
            return DiskChecks.judge("disk space", space, minFree: minFree, setting: "data.minFree", in: "/d").status
        }
        #expect(status(999, 10_000) == .fail)
        #expect(status(1_999, 10_000) == .warn)
        #expect(status(2_000, 10_000) == .pass)
        #expect(status(4_000, 100_000) == .warn)
        #expect(status(9_000, 10_000, inodes: 10) == .fail)
        #expect(DiskChecks.judge((median: 1, worst: 3), in: "/d").status == .pass)
        #expect(DiskChecks.judge((median: 16, worst: 30), in: "/d").status == .warn)
        #expect(DiskChecks.judge((median: 60, worst: 90), in: "/d").status == .fail)
        #expect(DiskChecks.judge(nil, in: "/d").status == .skip)
    }

    @Test func kernels() {
        var values = KernelCheck.Values(
            somaxconn: 4_096, synBacklog: 4_096, receive: [4_096, 131_072, 6_291_456], send: [4_096, 16_384, 4_194_304], congestion: "bbr",
            available: ["reno", "cubic", "bbr"], mostReceive: 4 << 20, mostSend: 4 << 20)
        #expect(KernelCheck.judge(values).map(\.status) == [.pass, .pass, .pass, .pass])
        values.somaxconn = 128
        values.send = [4_096, 16_384, 212_992]
        values.congestion = "reno"
        values.mostSend = 64 << 10
        let worse = KernelCheck.judge(values)
        #expect(worse.map(\.status) == [.warn, .warn, .warn, .warn])
        #expect(worse[0].advice == "sysctl -w net.core.somaxconn=4096")
        #expect(worse[2].advice == "sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304")
        #expect(worse[3].advice == "sysctl -w net.ipv4.tcp_congestion_control=bbr")
        #expect(KernelCheck.judge(KernelCheck.Values()).map(\.status) == [.skip, .skip, .skip, .skip])
        // What Linux gives by itself serves a few viewers.
        values.mostSend = 212_992
        #expect(KernelCheck.judge(values)[2].status == .pass)
    }

    @Test func certificateNames() {
        let facts = CertificateChecks.Facts(begins: 100, ends: 10_000_000, names: ["live.example.com", "*.example.org", "192.0.2.7"])
        for host in ["live.example.com", "LIVE.example.com", "a.example.org", "192.0.2.7"] { #expect(facts.covers(host), "\(host)") }
        for host in ["example.com", "a.live.example.com", "example.org", "a.b.example.org", "192.0.2.8", ""] {
            #expect(!facts.covers(host), "\(host)")
        }
        func statuses(_ hosts: [String], _ now: Int64) -> [DoctorResult.Status] {
            CertificateChecks.judge(facts, hosts: hosts, from: "f", now: now).map(\.status)
        }
        #expect(statuses([], 200) == [.pass, .pass])
        #expect(statuses(["a.example.org"], 99) == [.fail, .pass])
        #expect(statuses(["example.org"], 10_000_000) == [.fail, .fail])
        #expect(statuses(["live.example.com"], 9_999_999) == [.warn, .pass])
    }

    @Test func playlists() throws {
        let text = """
            #EXTM3U
            #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.6
            #EXT-X-PART-INF:PART-TARGET=0.2
            #EXT-X-MEDIA-SEQUENCE:7
            #EXT-X-MAP:URI="cam1.hls/init.mp4?s=1"
            #EXTINF:2.0,
            cam1.hls/7.m4s?s=1
            #EXT-X-PART:DURATION=0.2,URI="cam1.hls/8.0.m4s?s=1",INDEPENDENT=YES
            #EXT-X-PART:DURATION=0.2,URI="/x/8.1.m4s"
            """
        let playlist = Playlist(text, at: "http://h:8080/live/cam1.m3u8?token=a/b")
        #expect(playlist.map == "http://h:8080/live/cam1.hls/init.mp4?s=1")
        #expect(
            playlist.pieces == [
                "http://h:8080/live/cam1.hls/7.m4s?s=1", "http://h:8080/live/cam1.hls/8.0.m4s?s=1", "http://h:8080/x/8.1.m4s",
            ])
        let next = try #require(playlist.next)
        #expect(next == Playlist.Position(segment: 8, part: 2) && playlist.partTarget == 0.2 && !playlist.reaches(next))
        #expect(playlist.reaches(Playlist.Position(segment: 8, part: 1)) && playlist.reaches(Playlist.Position(segment: 7, part: 9)))
        let variants = Playlist(
            "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\nb.m3u8\n", at: "http://h/x.m3u8")
        #expect(variants.variant == "http://h/a.m3u8" && variants.next == nil && !variants.hasSegment)
    }

    @Test func reportsForPeopleAndPrograms() throws {
        let results: [DoctorResult] = [
            .pass("clock", "right"), .fail("disk space", "0 B free\u{1B}", "free some"), .skip("webhook", "not allowed"),
        ]
        var report = DoctorReport(form: .json)
        try report.add(results)
        let json = report.json(subject: "this machine", seconds: 1.26)
        #expect(json["ok"] == false && json["failed"] == 1 && json["skipped"] == 1 && json["seconds"] == .number(1.3))
        #expect(json["checks"].list[1]["advice"] == "free some" && json["checks"].list[0]["advice"].isNull)
        #expect(
            results.flatMap { DoctorReport.lines($0, colour: false) } == [
                "pass  clock                   right", "FAIL  disk space              0 B free\\u{1b}", "      → free some",
                "skip  webhook                 not allowed",
            ])
    }

    // MARK: - The rest of the command line

    @Test(
        arguments: [
            (["romms", "list"], "'romms'. Did you mean `earshot rooms`?"),
            (["rooms", "lsit"], "'lsit'. Did you mean `earshot rooms list`?"),
            (["docter"], "`earshot doctor`?"), (["xyzzy"], "`earshot --help` lists them."),
        ] as [([String], String)])
    func mistypedCommands(_ arguments: [String], _ words: String) throws {
        let mistake = try #require(CommandSuggestion.mistake(in: arguments, of: Earshot.self))
        #expect(mistake.contains(words), "\(mistake)")
    }

    @Test(arguments: [
        [], ["--rtpm", "x"], ["rooms"], ["rooms", "list", "extra"], ["serve", "x"], ["help", "romms"], ["rooms", "--jsno"],
    ])
    func otherMistakes(_ arguments: [String]) {
        #expect(CommandSuggestion.mistake(in: arguments, of: Earshot.self) == nil)
    }
}
