"""What nvitop sees, as JSON; run in an environment of its own."""

import json

from nvitop import Device

found = [
    {
        "uuid": str(device.uuid()),
        "name": str(device.name()),
        "util": device.gpu_utilization(),
        "used": device.memory_used(),
        "total": device.memory_total(),
        "power_mw": device.power_usage(),
        "temperature": device.temperature(),
        "pids": sorted(device.processes()),
        "mig": [str(mig.uuid()) for mig in device.mig_devices()],
    }
    for device in Device.all()
]
print(json.dumps(found, default=str))
