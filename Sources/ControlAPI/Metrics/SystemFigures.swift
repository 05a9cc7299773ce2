import HTTPAPI
import Packaging
import RoomRegistry
import ServerConfiguration
import Streaming
import Support

/// The process's figures from the system, and its disks. A value; making one reads files.
struct SystemFigures: Sendable {
    let process = ProcessFigures()
    let residentBytes = SystemMemory().resident
    let limit = OpenDescriptors.limit
    let open: Int?
    let store: StoreStatus
    /// Bytes free for the server, by the disk's use; leaves out unknown ones.
    let disks: [(name: String, bytes: Int64)]

    init(_ services: APIServices) {
        self.open = OpenDescriptors.count(upTo: self.limit ?? .max)
        self.store = services.rooms.storeStatus
        let folders = [("data", services.config.data.directory), ("recordings", services.recordings.folder.path)]
        self.disks = folders.compactMap { name, folder in
            DiskFloor(minFreeBytes: 0, directory: folder).freeBytes().map { (name, $0) }
        }
    }

    /// Read once: a value that moved with the clock would look like a restart. Seconds since 1970.
    static let startSeconds: Double? = ProcessFigures().runsForSeconds.map { (Double(WallClock.ms) / 1_000 - $0).rounded() }

    /// The compiler's version, as far as it is known.
    static let swiftVersion: String = {
        #if compiler(>=6.4)
        "6.4 or later"
        #elseif compiler(>=6.3)
        "6.3"
        #else
        "6.2"
        #endif
    }()
}

extension Metrics {
    /// Uses the names of Prometheus' own libraries.
    mutating func addProcess(_ system: SystemFigures) {
        self.page.family("earshot_build_info", .gauge, "Versions of the server, of its compiler, and of the FFmpeg libraries; always 1.")
        let (swift, ffmpeg) = (SystemFigures.swiftVersion, SnapshotMaker.libraries)
        self.page.sample("earshot_build_info", ["version": ServerVersion.text, "swift": swift, "ffmpeg": ffmpeg], 1)
        self.page.family("process_cpu_seconds_total", .counter, "Seconds of CPU that the server has used.")
        self.page.sample("process_cpu_seconds_total", system.process.cpuSeconds)
        if let runs = system.process.runsForSeconds {
            self.page.gauge("process_uptime_seconds", "Seconds since the server was started.", runs)
        }
        if let start = SystemFigures.startSeconds {
            self.page.gauge("process_start_time_seconds", "When the server was started, in seconds since 1970.", start)
        }
        if let bytes = system.residentBytes { self.page.gauge("process_resident_memory_bytes", "Bytes of the server in RAM.", bytes) }
        if let open = system.open { self.page.gauge("process_open_fds", "Open file descriptors.", open) }
        if let limit = system.limit { self.page.gauge("process_max_fds", "The limit of open file descriptors.", limit) }
        self.page.gauges(
            "earshot_disk_free_bytes", "Bytes free on the disk of the data directory, and of the recordings.", "of",
            system.disks.map { ($0.name, Double($0.bytes)) })
        if let ends = self.services.figures.certificateEnds {
            self.page.gauge(
                "earshot_certificate_expires_in_seconds",
                "Seconds until the TLS certificate, or one of its chain, expires; negative after that.",
                Double(ends) - Double(WallClock.ms) / 1_000)
        }
        let problem = self.services.streams.draining || system.store.problem != nil
        self.page.gauge(
            "earshot_ready", "1 while new pushes and plays may begin: the store works, and the server does not stop.", problem ? 0 : 1)
    }
}
