import CommandSupport
import LibC
import ServerConfiguration

/// Checks free space, and how long the disk takes for a synchronous write. Blocks, a second at most.
enum DiskChecks {
    static func run(_ subject: LocalSubject) -> [DoctorResult] {
        let directory = self.existing(subject.directory)
        let recordings = self.existing(subject.config.recording.directory ?? "\(subject.directory)/recordings")
        return [
            self.judge(
                "disk space", self.space(directory), minFree: subject.config.data.minFreeBytes, setting: "data.minFree", in: directory),
            self.judge(
                "disk for recordings", self.space(recordings), minFree: subject.config.recording.minFreeBytes, setting: "recording.minFree",
                in: recordings),
            self.judge(self.sync(in: directory), in: directory),
        ]
    }

    /// Bytes free for the server's user, and bytes and inodes in all.
    struct Space: Equatable {
        var free: Int
        var size: Int
        var freeInodes: Int
        var inodes: Int
    }

    static func judge(_ name: String, _ space: Space?, minFree: Int, setting: String, in directory: String) -> DoctorResult {
        guard let space else { return .skip(name, "\(directory): \(Console.explain(errno))") }
        func text(_ bytes: Int) -> String { HumanUnits.bytes(Int64(clamping: bytes)) ?? "?" }
        let measured = "\(text(space.free)) of \(text(space.size)) free in \(directory)"
        if space.free < minFree {
            return .fail(
                name, "\(measured), less than \(setting) (\(text(minFree)))",
                setting == "data.minFree"
                    ? "free some: nothing new begins below that, and pushes are refused (disk_full)"
                    : "free some, or delete recordings (earshot recordings delete): below that nothing is recorded")
        }
        if space.inodes > 0, space.freeInodes < 1_000 {
            return .fail(
                name, "\(measured), but only \(space.freeInodes) inodes", "delete small files, or make the file system anew with more")
        }
        if space.free < 2 * minFree || space.free < space.size / 20 {
            return .warn(name, "\(measured); nothing new begins below \(text(minFree))", "free some, before it is full")
        }
        return .pass(name, measured)
    }

    private static func space(_ path: String) -> Space? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        let block = Int(clamping: status.f_frsize)
        func bytes(_ blocks: some BinaryInteger) -> Int {
            let (product, overflows) = Int(clamping: blocks).multipliedReportingOverflow(by: block)
            return overflows ? .max : product
        }
        return Space(
            free: bytes(status.f_bavail), size: bytes(status.f_blocks), freeInodes: Int(clamping: status.f_favail),
            inodes: Int(clamping: status.f_files))
    }

    /// Milliseconds that the disk needs to write and sync 4 KiB, as the store's log does: the median and the worst of up to 25 writes. nil when it
    /// cannot be tried.
    private static func sync(in directory: String) -> (median: Double, worst: Double)? {
        let file = "\(directory)/.earshot-doctor-\(getpid())"
        let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        unlink(file)
        defer { close(descriptor) }
        let page = [UInt8](repeating: 0x5A, count: 4_096)
        var times: [Double] = []
        let clock = ContinuousClock()
        let end = clock.now + .seconds(1)
        while times.count < 25, clock.now < end {
            let start = clock.now
            guard write(descriptor, page, page.count) == page.count, fdatasync(descriptor) == 0 else { return nil }
            times.append((clock.now - start) / .milliseconds(1))
        }
        times.sort()
        guard let worst = times.last else { return nil }
        return (times[times.count / 2], worst)
    }

    static func judge(_ sync: (median: Double, worst: Double)?, in directory: String) -> DoctorResult {
        let name = "disk speed"
        guard let sync else { return .skip(name, "nothing can be written in \(directory)") }
        let figures =
            "4 KiB are safe after \(HumanUnits.decimal(sync.median) ?? "?") ms, \(HumanUnits.decimal(sync.worst) ?? "?") ms at worst"
        if sync.median > 50 {
            return .fail(name, figures, "every change of a room waits for this: put data.directory on an SSD, not on a network share")
        }
        if sync.median > 15 || sync.worst > 500 {
            return .warn(name, figures, "every change of a room waits for this: put data.directory on an SSD, or on a disk with less to do")
        }
        return .pass(name, figures)
    }

    private static func existing(_ path: String) -> String {
        var path = path
        while access(path, F_OK) != 0, let slash = path.lastIndex(of: "/") {
            path = slash == path.startIndex ? "/" : String(path[..<slash])
            if path == "/" { break }
        }
        return access(path, F_OK) == 0 ? path : "."
    }
}
